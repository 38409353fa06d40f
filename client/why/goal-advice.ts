import type { BlockedOn, PausedBy } from '../../workflows/core/goal/goal-state.ts';
import type { GoalMove } from './goal-words.ts';

/** What to do about a goal that is not over; nothing where it works just now. */
export function goalAdvice(move: GoalMove | null, isRunning: boolean): readonly string[] {
  if (!move || move.kind === 'goal.ended') return [];
  const { goal, reason, detail } = move;
  switch (reason) {
    case 'paused':
      return [PAUSED[(detail ?? 'user') as PausedBy](move)];
    case 'blocked':
      return [BLOCKED[(detail ?? 'external_dependency') as BlockedOn](goal)];
    case 'budget_limited':
      return [`What is left of its budget (${detail}) is not enough: raise it with \`pawl goal edit ${goal}\`.`];
    case 'waiting':
      return [WAITING[detail ?? 'time']?.(goal) ?? `Nothing: it goes on by itself.`];
    default:
      return isRunning ? [] : [`Nothing: its goal goes on by itself; \`pawl goal show ${goal}\` says how far it is.`];
  }
}

const PAUSED: Readonly<Record<PausedBy, (move: GoalMove) => string>> = {
  user: ({ goal }) => `Go on with \`pawl goal resume ${goal}\`, when it may.`,
  infrastructure: ({ goal, evidence }) => `${OUTAGE[evidence.name] ?? 'Nothing'}: ${againWords(goal)}.`,
  backoff: ({ goal }) => `Nothing: ${againWords(goal)}.`,
  no_progress: ({ goal }) =>
    `It came no further: \`pawl goal show ${goal}\` says what was found; help it with \`pawl goal edit ${goal} --objective …\`, then \`pawl goal resume ${goal}\`.`,
  refusal: ({ goal }) =>
    `The model refused: change the objective with \`pawl goal edit ${goal} --objective …\`, then \`pawl goal resume ${goal}\`.`,
};

const OUTAGE: Readonly<Record<string, string>> = {
  judge_failed: 'See whether the model that judges answers as it should',
  workspace_away: 'Bring back a worker on the machine that has its files',
};

function againWords(goal: string): string {
  return `it tries again by itself; at once with \`pawl goal wake ${goal}\``;
}

const BLOCKED: Readonly<Record<BlockedOn, (goal: string) => string>> = {
  external_dependency: (goal) => `See to what it waits for; then \`pawl goal wake ${goal}\`.`,
  same_blocker: (goal) =>
    `\`pawl goal show ${goal}\` says what it lacks; when that is there, \`pawl goal wake ${goal}\`.`,
  context_limit: (goal) => `Its conversation is full: begin another goal in a new session, and cancel ${goal}.`,
  invalid_request: (goal) => `Mend what the provider refuses; then \`pawl goal wake ${goal}\`.`,
  context_unusable: (goal) => `Rewind its session to an earlier message; then \`pawl goal wake ${goal}\`.`,
  internal: (goal) => `Look into the log of the worker, and report it; \`pawl goal wake ${goal}\` tries again.`,
  unknown_outcome: (goal) =>
    `Say what became of its call, as \`pawl approvals\` lists it; then \`pawl goal wake ${goal}\`.`,
  session_closed: (goal) => `Unarchive its session; then \`pawl goal wake ${goal}\`.`,
};

const WAITING: Readonly<Record<string, (goal: string) => string>> = {
  time: (goal) =>
    `Nothing: it goes on at its time, which \`pawl goal show ${goal}\` names; at once with \`pawl goal wake ${goal}\`.`,
  event: (goal) =>
    `Nothing, or report the event, which \`pawl goal show ${goal}\` names: \`pawl goal wake ${goal} --event <name>\`.`,
  answer: () => 'It goes on with the answer that its turn waits for.',
};
