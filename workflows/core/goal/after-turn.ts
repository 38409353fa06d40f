import { POLICY } from '../policy.ts';
import type { EndedTurn } from './goal-event.ts';
import { goalLimitReached, heldOf } from './goal-limits.ts';
import type { BlockedOn, GoalState, GoalStatus, LentLimit, PausedBy } from './goal-state.ts';

/** What the end of a turn does to a goal that is at work. */
export type Consequence =
  | { readonly kind: 'judge' | 'go_on' }
  /** What it lacked is lent. */
  | { readonly kind: 'lent'; readonly limit: LentLimit }
  | { readonly kind: 'rest'; readonly status: Exclude<GoalStatus, { readonly kind: 'active' }> };

const judge: Consequence = { kind: 'judge' };
const goOn: Consequence = { kind: 'go_on' };
const rest = (status: Exclude<GoalStatus, { readonly kind: 'active' }>): Consequence => ({ kind: 'rest', status });
const blocked = (on: BlockedOn): Consequence => rest({ kind: 'blocked', on });
const paused = (by: Exclude<PausedBy, 'backoff' | 'infrastructure'>): Consequence => rest({ kind: 'paused', by });

/** The one table of it (behaviour: goals, after other ends). */
export function consequenceOf(state: GoalState, { end, waitsFor, limit }: EndedTurn): Consequence {
  switch (end.detail) {
    case 'final_answer':
    case 'todo_open':
      return judge;
    case 'refused':
      return paused('refusal');
    case 'output_limit':
    case 'lost':
    case 'workspace_lost':
    case 'timed_out':
      return goOn;
    case 'context_limit':
    case 'invalid_request':
    case 'context_unusable':
    case 'internal':
    case 'unknown_outcome':
      return blocked(end.detail);
    case 'user_cancel':
    case 'permission_rejected':
    case 'permission_cancelled':
    case 'hook_stop':
    case 'parent_cancelled':
    case 'terminated':
      return paused('user');
    case 'budget':
      return outOf(state, limit ?? 'tokens');
    case 'max_steps':
    case 'deadline':
      return state.brakes.cutTurns <= POLICY.goal.cutTurnsInARow ? judge : backedOff(state, 'backoff', 0);
    case 'scheduler_cancel':
      return rest({ kind: 'cancelled' });
    case 'auth':
    case 'model':
    case 'provider_unavailable':
    case 'storage':
    case 'tool_infrastructure':
      return backedOff(state, 'infrastructure', state.brakes.outages);
    case 'no_progress':
      return paused('no_progress');
    case 'awaiting_input':
    case 'awaiting_approval':
    case 'external_dependency':
      return waitsFor ? rest({ kind: 'waiting', awaited: waitsFor }) : blocked('external_dependency');
  }
}

/** The budget that ended the turn was the goal's own, where one of those is used up. */
function outOf(state: GoalState, limit: LentLimit): Consequence {
  const reached = goalLimitReached(state);
  if (!reached && heldOf(state, limit) > 0) return { kind: 'lent', limit };
  return rest({ kind: 'budget_limited', limit: reached?.limit ?? limit });
}

/** The n-th time in a row it rests longer. */
function backedOff(state: GoalState, by: 'backoff' | 'infrastructure', times: number): Consequence {
  const { wakeAfterMs } = POLICY.goal;
  const ms = wakeAfterMs[Math.min(times, wakeAfterMs.length - 1)] ?? 0;
  return rest({ kind: 'paused', by, untilMs: state.atMs + ms });
}
