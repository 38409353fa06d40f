import type { EndReason } from '../../workflows/core/ends.ts';
import type { JobEnd } from '../job.ts';

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

/** A job that was withdrawn before it began or went on, or kept back by a hook, counts as aborted. */
export function exitCodeOf({ end, dropped }: Pick<JobEnd, 'end' | 'dropped'>): number {
  return CODES[dropped || !end ? 'ABORTED' : end.reason];
}
