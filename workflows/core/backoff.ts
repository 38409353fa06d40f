import { POLICY } from './policy.ts';

/** How long to rest before try `used` + 1, in ms: growing, spread by the dice, never less than was asked for. */
export function backoffMs(used: number, askedMs: number | null, dice: number): number {
  const { delaysMs, jitterShare } = POLICY.transport;
  const base = delaysMs[Math.min(used, delaysMs.length) - 1] ?? delaysMs[delaysMs.length - 1] ?? 0;
  const spread = base * (1 + jitterShare * (2 * dice - 1));
  return Math.round(Math.max(spread, askedMs ?? 0));
}
