import type { SessionInput } from '../inputs.ts';
import type { Session } from '../sessions.ts';
import { agentLine } from './agent-line.ts';
import { costText } from './cost-text.ts';
import type { JobTurnEnd } from '../job.ts';
import type { ShownCall, ShownEffect, ShownJob } from '../show.ts';
import { argumentSummary, droppedLine, duration, endLine, jobLine, oneLine, printable, usageLine } from './format.ts';
import { waitingLines } from './input-lines.ts';
import { sessionLine } from './session-line.ts';

const WIDTH = 100;

/** A whole job for people to read: what was asked, what was done, what it did to the world, why it ended. */
export function showText(shown: ShownJob, nowMs: number, waiting: readonly SessionInput[] = []): string {
  const { job, turns, calls, effects, agents } = shown;
  const lines = [jobLine(job, nowMs), `  session ${job.session}`, `  asked   ${oneLine(shown.prompt, WIDTH)}`];
  if (shown.plan)
    lines.push(`  plans   only readers and writes to its plan file run: \`pawl plan ${job.session} off\` ends that`);
  for (const turn of turns) {
    const before = turns.find(({ id }) => id === turn.continues);
    lines.push(
      '',
      `turn ${turn.n}, opened ${turn.openedAt}${before ? `, goes on by itself after turn ${before.n}` : ''}`,
    );
    lines.push(...calls.filter((call) => call.turn === turn.id).map(callLine));
    lines.push(turn.end ? `  ${endLine(turn.end)}` : '  has not ended');
    if (turn.end) lines.push(...endFacts(turn.end));
  }
  if (job.goal) lines.push('', `goal ${job.goal.id} is ${job.goal.status}`);
  else if (job.end && job.state === 'running') lines.push('', 'goes on by itself: a turn more is queued');
  if (job.dropped) lines.push(...(job.end ? [''] : []), `  ${droppedLine(job)}`);
  if (effects.length > 0) lines.push('', 'effects', ...effects.map((effect) => effectLine(effect, calls)));
  if (agents.length > 0) lines.push('', 'sub-agents', ...agents.map((each) => `  ${agentLine(each)}`));
  lines.push(...waitingLines(waiting, nowMs));
  lines.push('', costText(shown.usage));
  if (shown.text !== null) lines.push('', printable(shown.text));
  return lines.join('\n');
}

/** A session for people: how it stands, what waits in it, and where to read on. */
export function sessionText(session: Session, waiting: readonly SessionInput[], nowMs: number): string {
  const { id, workspace } = session;
  const read = `  read on with \`pawl messages ${id}\`, \`pawl inputs ${id}\`, \`pawl why ${id}\``;
  const files = `  files   ${workspace.path} (${workspace.kind})`;
  return [sessionLine(session, nowMs), files, ...waitingLines(waiting, nowMs), '', read].join('\n');
}

function endFacts(end: JobTurnEnd): string[] {
  const { signal, structuredOutput, contract } = end;
  const todos = signal.name === 'open_todos' ? (signal.items ?? []) : [];
  return [
    ...todos.map((item) => `  open    ${oneLine(item, WIDTH)}`),
    ...(contract === 'unmet' ? ['  contract unmet'] : []),
    ...(structuredOutput ? [`  output  ${printable(JSON.stringify(structuredOutput))}`] : []),
    ...(end.resumeAt ? [`  try again after ${end.resumeAt}`] : []),
    `  ${usageLine(end)}`,
  ];
}

function callLine(call: ShownCall): string {
  const status = call.status ?? 'not answered';
  const took = call.finishedAt ? duration(Date.parse(call.finishedAt) - Date.parse(call.createdAt)) : '';
  const note = call.note === null ? '' : oneLine(call.note, 60);
  const about = argumentSummary(call.arguments, 60);
  return `  step ${call.step}  ${[oneLine(call.tool, 40), about, status, took, note].filter((part) => part !== '').join('  ')}`;
}

function effectLine(effect: ShownEffect, calls: readonly ShownCall[]): string {
  const call = calls.find(({ key }) => key === effect.key);
  const about = call ? argumentSummary(call.arguments, 60) : '';
  const undo = effect.undo === null ? '' : `, undo ${effect.undo}`;
  return `  ${effect.state}${undo}  ${effect.effect}  ${oneLine(effect.tool, 40)} ${about}`.trimEnd();
}
