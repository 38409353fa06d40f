import { POLICY } from '../../workflows/core/policy.ts';

/**
 * How large a context is: by the provider's own count of the last reply, and by bytes for what came since or
 * was left out since. Before the first count, by bytes alone.
 */
export interface Gauge {
  /** By bytes, when the count was taken. */
  readonly sumTokens: number;
  readonly countedTokens: number;
}

export function gaugeAt(sumTokens: number, countedTokens: number): Gauge {
  // Some gateways leave cached input out of their count: it is not believed below any likely size.
  const least = sumTokens * POLICY.context.measured.leastFactor;
  return { sumTokens, countedTokens: Math.max(countedTokens, least) };
}

/** Tokens of a context that has this sum by bytes. */
export function estimated(gauge: Gauge | null, sumTokens: number): number {
  if (!gauge) return sumTokens;
  return Math.round(gauge.countedTokens + (sumTokens - gauge.sumTokens) * factorOf(gauge));
}

/** The provider's tokens for one of ours. */
export function factorOf(gauge: Gauge | null): number {
  if (!gauge || gauge.sumTokens <= 0) return 1;
  const { sinceLeastFactor, sinceMostFactor } = POLICY.context.measured;
  return Math.min(sinceMostFactor, Math.max(sinceLeastFactor, gauge.countedTokens / gauge.sumTokens));
}
