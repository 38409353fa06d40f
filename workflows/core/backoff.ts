import { type Patience, POLICY } from './policy.ts';
import type { ProviderFailure } from './sample-outcome.ts';

interface Asked {
  /** Attempts so far. */
  readonly used: number;
  /** What the provider asked for; null where it did not say. */
  readonly askedMs: number | null;
  /** In [0, 1). */
  readonly dice: number;
}

/** How long to rest before the next attempt, in ms: growing, spread by the dice, never less than was asked for. */
export function backoffMs({ transportDelaysMs: delaysMs }: Patience, { used, askedMs, dice }: Asked): number {
  const base = delaysMs[Math.min(used, delaysMs.length) - 1] ?? 0;
  const spread = base * (1 + POLICY.backoff.jitterShare * (2 * dice - 1));
  return Math.round(Math.max(spread, askedMs ?? 0));
}

/** What a 429 is waited for. A used-up quota is never asked again at once. */
export function waitOf(
  { rateLimitWaitMs }: Patience,
  { afterMs, quota }: ProviderFailure & { kind: 'rate_limited' },
): number {
  return Math.max(afterMs ?? rateLimitWaitMs, quota ? rateLimitWaitMs : 0);
}
