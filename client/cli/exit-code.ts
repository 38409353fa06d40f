import type { EndReason } from '../../workflows/core/ends.ts';
import { type JobEnd, WAITS_FOR_SOMEBODY } from '../job.ts';

/** Exit codes are part of the contract: scripts branch on them. */
export const EXIT = { ok: 0, fault: 1, usage: 2, interrupted: 130 } as const;

const CODES: Readonly<Record<EndReason, number>> = {
  COMPLETED: 0,
  ERROR: 1,
  BLOCKED: 3,
  MAX_TOKENS: 4,
  ABORTED: 5,
  INTERRUPTED: 6,
};

/**
 * A job that was withdrawn before it began or went on, or kept back by a hook, counts as aborted. One with a goal
 * has its goal's end.
 */
export function exitCodeOf({
  end,
  dropped,
  goal,
}: Pick<JobEnd, 'end' | 'dropped'> & Partial<Pick<JobEnd, 'goal'>>): number {
  if (goal) return goalExitCode(goal.status);
  return CODES[dropped || !end ? 'ABORTED' : end.reason];
}

export function goalExitCode(status: string): number {
  if (status === 'complete') return CODES.COMPLETED;
  if (status === 'cancelled') return CODES.ABORTED;
  if (status.startsWith('budget_limited')) return CODES.MAX_TOKENS;
  return WAITS_FOR_SOMEBODY.test(status) ? CODES.BLOCKED : EXIT.ok;
}
