import type { TokenUsage, Usage } from './sample-outcome.ts';

/** Of one model, in micro-USD (millionths of a US dollar) for a million tokens: whole numbers. */
export interface ModelPrices {
  readonly inputMicroUsdPerM: number;
  readonly cachedInputMicroUsdPerM: number;
  readonly outputMicroUsdPerM: number;
  readonly reasoningMicroUsdPerM: number;
}

/** By the model's name. */
export type PriceTable = Readonly<Record<string, ModelPrices>>;

const TOKENS_PER_PRICE = 1_000_000;

/** What these tokens cost, rounded up. Cached input is part of the input, reasoning is part of the output. */
export function costMicroUsd(tokens: Omit<TokenUsage, 'complete'>, prices: ModelPrices): number {
  const { inputTokens, cachedTokens, outputTokens, reasoningTokens } = tokens;
  return toMicroUsd(
    Math.max(0, inputTokens - cachedTokens) * prices.inputMicroUsdPerM +
      cachedTokens * prices.cachedInputMicroUsdPerM +
      Math.max(0, outputTokens - reasoningTokens) * prices.outputMicroUsdPerM +
      reasoningTokens * prices.reasoningMicroUsdPerM,
  );
}

/** The most that a request may cost: all of its input at full price, and output up to its cap. */
export function worstMicroUsd(
  request: { readonly inputTokens: number; readonly outputTokens: number },
  prices: ModelPrices,
): number {
  const { inputMicroUsdPerM, cachedInputMicroUsdPerM, outputMicroUsdPerM, reasoningMicroUsdPerM } = prices;
  return toMicroUsd(
    request.inputTokens * Math.max(inputMicroUsdPerM, cachedInputMicroUsdPerM) +
      request.outputTokens * Math.max(outputMicroUsdPerM, reasoningMicroUsdPerM),
  );
}

/** The most that so many tokens may cost, of whatever kind they are; null where they are free. */
export function dearestMicroUsd(tokens: number, prices: ModelPrices): number | null {
  const asInput = worstMicroUsd({ inputTokens: tokens, outputTokens: 0 }, prices);
  const asOutput = worstMicroUsd({ inputTokens: 0, outputTokens: tokens }, prices);
  return Math.max(asInput, asOutput) || null;
}

function toMicroUsd(priced: number): number {
  return Math.ceil(priced / TOKENS_PER_PRICE);
}

/** The usage of one request with its cost. `worst` is what it may cost at most; null where there is no price. */
export function priced(tokens: TokenUsage, prices: ModelPrices | null, worst: number | null): Usage {
  if (prices === null || worst === null) return { ...tokens, microUsd: null, heldMicroUsd: 0 };
  const microUsd = costMicroUsd(tokens, prices);
  return { ...tokens, microUsd, heldMicroUsd: tokens.complete ? 0 : Math.max(0, worst - microUsd) };
}

/** What a USD budget counts: what is known, and the worst case of what is not. */
export function chargedMicroUsd({ microUsd, heldMicroUsd }: Pick<Usage, 'microUsd' | 'heldMicroUsd'>): number {
  return (microUsd ?? 0) + heldMicroUsd;
}

/** What a token budget counts: cached input is not charged again. */
export function chargedTokens(usage: TokenUsage): number {
  return usage.inputTokens - usage.cachedTokens + usage.outputTokens;
}

export function addUsage(a: Usage, b: Usage): Usage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    complete: a.complete && b.complete,
    microUsd: a.microUsd === null || b.microUsd === null ? null : a.microUsd + b.microUsd,
    heldMicroUsd: a.heldMicroUsd + b.heldMicroUsd,
  };
}
