import type { JournalEvent } from '../../workflows/core/journal.ts';

type GoalMove = Extract<JournalEvent, { kind: 'goal.moved' | 'goal.ended' }>;

/** What to do about a goal that does not go on by itself; nothing where it does, or is over. */
export function goalAdvice(move: GoalMove | null): readonly string[] {
  if (!move || move.kind === 'goal.ended') return [];
  const { goal, reason, detail } = move;
  switch (reason) {
    case 'paused':
      return [PAUSED[detail ?? '']?.(goal) ?? `Go on with \`pawl goal resume ${goal}\`.`];
    case 'blocked':
      return [`See what it lacks in its last answer; when that is there, \`pawl goal wake ${goal}\`.`];
    case 'budget_limited':
      return [`Its budget is used up (${detail}): raise it with \`pawl goal edit ${goal}\`, or cancel the goal.`];
    case 'waiting':
      return [`Nothing, or report what it waits for: \`pawl goal wake ${goal} --event <name>\`.`];
    default:
      return [];
  }
}

const PAUSED: Readonly<Record<string, (goal: string) => string>> = {
  infrastructure: (goal) => `Nothing: it tries again by itself; at once with \`pawl goal wake ${goal}\`.`,
  backoff: (goal) => `Nothing: it goes on by itself; at once with \`pawl goal wake ${goal}\`.`,
  no_progress: (goal) =>
    `It came no further: help it with \`pawl goal edit ${goal} --objective …\`, then \`pawl goal resume ${goal}\`.`,
  refusal: (goal) => `The model refused: change the objective with \`pawl goal edit ${goal}\`, then resume it.`,
};
