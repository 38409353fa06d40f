import { z } from 'zod';
import { DEFAULT_LIMITS, type Limits } from '../../workflows/core/policy.ts';
import { dearestMicroUsd, type ModelPrices } from '../../workflows/core/usage.ts';
import { SetupError } from '../setup-error.ts';

/** What a model costs, in US dollars for a million tokens. */
export interface PricesDefinition {
  readonly input: number;
  /** Input that the provider had in its cache; `input` if left out. */
  readonly cachedInput?: number;
  readonly output: number;
  /** Reasoning, which is part of the output; `output` if left out. */
  readonly reasoning?: number;
}

/** The limits of a turn, as a config file writes them. */
export interface LimitsDefinition extends Partial<Omit<Limits, 'maxMicroUsd'>> {
  /** In US dollars; needs prices. If left out where there are prices: what `maxTokens` costs at the dearest of them. */
  readonly maxUsd?: number | null;
}

const MICRO = 1_000_000;
/** So that whole numbers stay exact. */
const DEAREST_USD = 1_000;

const price = z.number().min(0).max(DEAREST_USD);

/** For the fields `prices`: of an agent, and of the config by model. */
export const pricesShape = z.strictObject({
  input: price,
  cachedInput: price.optional(),
  output: price,
  reasoning: price.optional(),
});

const limit = z.number().int().positive();

/** For the field `limits` of an agent. */
export const limitsShape = z
  .strictObject({
    maxSteps: limit.nullable(),
    maxTokens: limit.nullable(),
    maxUsd: z.number().positive().max(MICRO).nullable(),
    maxRunningMs: limit.nullable(),
    notAfterMs: limit.nullable(),
    outputTokens: limit,
    raisedOutputTokens: limit,
    contextTokens: limit,
    workspaceWaitMs: limit,
  })
  .partial();

export function resolvePrices(definition: PricesDefinition): ModelPrices {
  const { input, output, cachedInput = input, reasoning = output } = definition;
  return {
    inputMicroUsdPerM: toMicroUsd(input),
    cachedInputMicroUsdPerM: toMicroUsd(cachedInput),
    outputMicroUsdPerM: toMicroUsd(output),
    reasoningMicroUsdPerM: toMicroUsd(reasoning),
  };
}

interface Limited {
  readonly name: string;
  readonly attended: boolean;
  readonly model: string;
  readonly limits: LimitsDefinition | undefined;
  /** Null where none are known. */
  readonly prices: ModelPrices | null;
}

/** Fills the limits of an agent in, and refuses what could not be kept. Throws a SetupError. */
export function resolveLimits(agent: Limited): Limits {
  const { name, attended, model, prices } = agent;
  const { maxUsd, ...named } = agent.limits ?? {};
  const limits: Limits = { ...DEFAULT_LIMITS, ...named };
  const isEndless = (['maxSteps', 'maxTokens', 'maxRunningMs'] as const).find((key) => limits[key] === null);
  const endless = isEndless ?? (maxUsd === null && prices !== null ? 'maxUsd' : undefined);
  if (endless && !attended) {
    throw new SetupError(
      `Agent ${name} has no ${endless}; only an attended agent may run without it: set attended: true.`,
    );
  }
  if (maxUsd === null || (maxUsd === undefined && prices === null)) return limits;
  const dearest = prices && limits.maxTokens !== null ? dearestMicroUsd(limits.maxTokens, prices) : null;
  if (maxUsd === undefined) return { ...limits, maxMicroUsd: dearest };
  if (prices === null) {
    throw new SetupError(
      `Agent ${name} has a maxUsd, but no price of ${model} is known: give the agent prices, or take maxUsd away.`,
    );
  }
  return { ...limits, maxMicroUsd: toMicroUsd(maxUsd) };
}

function toMicroUsd(usd: number): number {
  return Math.round(usd * MICRO);
}
