import type { Why } from '../why/report.ts';
import { agentLine } from './agent-line.ts';
import { oneLine } from './format.ts';

const WIDTH = 400;

/** The chain from the last stream to the goal, in words, and what to do now. */
export function whyText(why: Why): string {
  const { id, job, turn, session, state, chain, goesOn, waitsFor, unknownEffects, agents, advice } = why;
  const goal = id.startsWith('goal_') ? id : null;
  const named = [goal, job, turn ?? `session ${session}`].filter((name) => name !== null).join(', ');
  return [
    `${named}: ${state.replace('_', ' ')}`,
    ...chain.map(({ layer, words }) => `  ${layer.padEnd(6)}  ${oneLine(words, WIDTH)}`),
    ...(goesOn
      ? [`  goes on by itself, time ${goesOn.n} of ${goesOn.of}: ${goesOn.turn ?? goesOn.state.replace('_', ' ')}`]
      : []),
    ...waitsFor.map(
      (each) =>
        `  waits   for ${each.for} ${each.id} (${oneLine(each.tool, 40)})${each.until === null ? '' : ` until ${each.until}`}`,
    ),
    ...unknownEffects.map(
      (each) => `  unknown ${oneLine(each.tool, 40)}, ${each.effect}, ${each.state}, call ${each.key.slice(0, 12)}`,
    ),
    ...agents.map((each) => `  agent   ${oneLine(agentLine(each), WIDTH)}`),
    'What to do now',
    ...advice.map((each) => `  ${oneLine(each, WIDTH)}`),
  ].join('\n');
}
