import type { GoalCause } from '../../workflows/core/goal/goal-state.ts';
import type { JournalEvent } from '../../workflows/core/journal.ts';

export type GoalMove = Extract<JournalEvent, { kind: 'goal.moved' | 'goal.ended' }>;

/** How a goal stands, and what brought it there. */
export function goalWords({ reason, detail, evidence, by, why }: GoalMove): string {
  const who = by === null ? '' : ` of ${by}${why === null ? '' : `, who said “${why}”`}`;
  return `${detail === null ? reason : `${reason}/${detail}`}: ${causeWords(evidence)}${who}`;
}

function causeWords(cause: GoalCause): string {
  switch (cause.name) {
    case 'turn_end':
      return `a turn ended ${cause.reason}/${cause.detail}`;
    case 'limit':
      return `limit ${cause.limit}: ${cause.used} of ${cause.allowed} are used`;
    case 'reserve':
      return `limit ${cause.limit}: the next request may use ${cause.needed}, and ${cause.left} are left`;
    case 'judge_failed':
      return `who judges gave no usable answer ${cause.tries} times`;
    case 'same_gap':
      return 'the judge found the same gap twice';
    case 'no_progress':
      return `${cause.times} turns in a row have changed nothing`;
    case 'session':
      return cause.state === 'closed' ? 'its session is closed' : 'its directive was taken out of the queue';
    default:
      return CAUSES[cause.name];
  }
}

type Plain = Exclude<
  GoalCause['name'],
  'turn_end' | 'limit' | 'reserve' | 'judge_failed' | 'same_gap' | 'no_progress' | 'session'
>;

const CAUSES: Readonly<Record<Plain, string>> = {
  checks: 'its checks pass',
  judge: 'the judge says so',
  sceptics: 'judge and sceptics agree',
  stop_gate: 'the stop gate wants it',
  claim: 'the model says so',
  time: 'its time came',
  created: 'it was created',
  workspace_away: 'no worker has its files',
  command: 'a command',
  wake: 'a wake',
};
