import type { Goal, GoalWithWakes } from '../goals.ts';
import type { RecurringGoal } from '../recurring.ts';
import { oneLine } from './format.ts';

const WIDTH = 80;

export function goalLine({ id, status, rounds, budget, objective }: Goal): string {
  return `${id}  ${status.padEnd(16)}  ${rounds}/${budget.turns}  ${oneLine(objective, WIDTH)}`;
}

export function goalText(goal: GoalWithWakes): string {
  const { id, status, session, version, rounds, spent, budget, objective, checks, wakes, createdAt, createdBy } = goal;
  const usd = budget.microUsd === null ? [] : [`${spent.microUsd ?? 0} of ${budget.microUsd} micro-USD`];
  const used = [
    `${spent.turns} of ${budget.turns} turns`,
    `${spent.tokens} of ${budget.tokens} tokens`,
    ...usd,
    `${minutes(spent.runningMs)} of ${minutes(budget.runningMs)} minutes`,
  ];
  return [
    `${id}: ${status}, round ${rounds}`,
    `  session    ${session}`,
    `  objective  ${oneLine(objective, 400)}${version > 1 ? `  (version ${version})` : ''}`,
    `  used       ${used.join(', ')}`,
    ...checks.map(({ command, timeoutSeconds }) => `  check      ${oneLine(command, 200)}  (${timeoutSeconds} s)`),
    `  created    ${createdAt}${createdBy === null ? '' : ` by ${oneLine(createdBy, 40)}`}`,
    ...wakes.map(
      (each) =>
        `  wake       ${each.at}  ${each.outcome ?? 'waits'}${each.why === null ? '' : ` (${each.why})`}  ${oneLine(each.id, 40)}`,
    ),
  ].join('\n');
}

function minutes(ms: number): number {
  return Math.floor(ms / 60_000);
}

export function recurringText({ id, objective, schedule, endedAt, firings }: RecurringGoal): string {
  return [
    `${id}: recurring, ${endedAt === null ? JSON.stringify(schedule) : `ended ${endedAt}`}`,
    `  objective  ${oneLine(objective, 400)}`,
    ...firings.map(({ slot, outcome, goal }) => `  firing     ${slot}  ${outcome}${goal === null ? '' : `  ${goal}`}`),
  ].join('\n');
}
