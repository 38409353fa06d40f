import type { TokenUsage, Usage } from '../../workflows/core/sample-outcome.ts';
import { type ModelPrices, priced, worstMicroUsd } from '../../workflows/core/usage.ts';
import type { StoredAgent } from '../store/schema.ts';

/** What one request may cost at most, and what its tokens do; null where the model has no price. */
export interface Pricing {
  readonly prices: ModelPrices | null;
  readonly worstMicroUsd: number | null;
}

/** `tokens`: the estimated input, and the cap of the output. */
export function pricingOf(
  agent: Pick<StoredAgent, 'model' | 'prices'>,
  tokens: { readonly inputTokens: number; readonly outputTokens: number },
): Pricing {
  const prices = agent.prices?.[agent.model] ?? null;
  return { prices, worstMicroUsd: prices && worstMicroUsd(tokens, prices) };
}

export function withCost(usage: TokenUsage, pricing: Pricing): Usage {
  return priced(usage, pricing.prices, pricing.worstMicroUsd);
}
