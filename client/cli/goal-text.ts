import { checkName } from '../../activities/store/check-name.ts';
import type { Goal, GoalWithWakes } from '../goals.ts';
import type { RecurringGoal, RecurringLine } from '../recurring.ts';
import { scheduleWords } from '../schedule-spec.ts';
import { usd } from './cost-text.ts';
import { oneLine } from './format.ts';

const WIDTH = 80;

export function goalLine({ id, status, spent, budget, objective }: Goal): string {
  return `${id}  ${status.padEnd(22)}  ${spent.turns}/${budget.turns}  ${oneLine(objective, WIDTH)}`;
}

export function recurringLine({ id, status, schedule, objective }: RecurringLine): string {
  return `${id}  ${status.padEnd(22)}  ${scheduleWords(schedule)}  ${oneLine(objective, WIDTH)}`;
}

export function goalText(goal: GoalWithWakes): string {
  const { id, status, session, version, rounds, spent, budget, objective, wakes, createdAt, createdBy } = goal;
  const used = [
    `${spent.turns} of ${budget.turns} turns`,
    `${spent.tokens} of ${budget.tokens} tokens`,
    ...(budget.microUsd === null ? [] : [`${usd(spent.microUsd ?? 0)} of ${usd(budget.microUsd)}`]),
    `${minutes(spent.runningMs)} of ${minutes(budget.runningMs)} minutes`,
  ];
  return [
    `${id}: ${status}, round ${rounds}`,
    `  session    ${session}`,
    `  objective  ${oneLine(objective, 400)}${version > 1 ? `  (version ${version})` : ''}`,
    ...restLines(goal),
    `  used       ${used.join(', ')}`,
    ...checkLines(goal),
    `  created    ${createdAt}${byWhom(createdBy)}`,
    ...commandLines(goal),
    ...wakes.map(
      ({ at, outcome, why, event, id: key }) =>
        `  wake       ${at}  ${outcome ?? 'waits'}${why === null ? '' : ` (${why})`}  ${oneLine(key, 40)}${event === null ? '' : `: ${oneLine(event, 80)}`}`,
    ),
  ].join('\n');
}

function restLines({ event, until, verdict }: GoalWithWakes): string[] {
  return [
    ...(event === null ? [] : [`  waits for  ${oneLine(event, 200)}`]),
    ...(until === null ? [] : [`  goes on    ${until}`]),
    ...(verdict === null ? [] : [`  found      ${verdict.source.replace('_', ' ')}: ${oneLine(verdict.text, 400)}`]),
  ];
}

function mayUse({ turns, tokens, microUsd, runningMs }: Goal['budget']): string {
  const money = microUsd === null ? [] : [usd(microUsd)];
  return [`${turns} turns`, `${tokens} tokens`, ...money, `${minutes(runningMs)} minutes`].join(', ');
}

function checkLines({ checks }: Pick<Goal, 'checks'>): string[] {
  return checks.map((check) => `  check      ${oneLine(checkName(check), 200)}  (${check.timeoutSeconds} s)`);
}

function commandLines({ commands }: Pick<GoalWithWakes, 'commands'>): string[] {
  return commands.map(({ at, kind, by, why, answer }) => {
    const said = why === null ? '' : `: ${oneLine(why, 80)}`;
    return `  command    ${at}  ${kind}${byWhom(by)}${said}${answer === null ? '' : `  → ${answer}`}`;
  });
}

function byWhom(by: string | null): string {
  return by === null ? '' : ` by ${oneLine(by, 40)}`;
}

function minutes(ms: number): number {
  return Math.floor(ms / 60_000);
}

export function recurringText(goal: RecurringGoal): string {
  const { id, status, objective, schedule, endedAt, firings } = goal;
  return [
    `${id}: recurring, ${status}${endedAt === null ? '' : ` since ${endedAt}`}`,
    `  fires      ${scheduleWords(schedule)}`,
    `  objective  ${oneLine(objective, 400)}`,
    `  may use    ${mayUse(goal.budget)} each time`,
    ...checkLines(goal),
    ...commandLines(goal),
    ...firings.map(
      ({ slot, outcome, goal: round }) => `  firing     ${slot}  ${outcome}${round === null ? '' : `  ${round}`}`,
    ),
  ].join('\n');
}
