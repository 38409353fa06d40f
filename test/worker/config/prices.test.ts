import { describe, expect, test } from 'vitest';
import { resolveConfig } from '../../../worker/config/load.ts';
import type { AgentDefinition } from '../../../worker/config/define.ts';
import { pricesShape } from '../../../worker/config/prices.ts';

const agent = (change: Partial<AgentDefinition>): AgentDefinition => ({
  name: 'a',
  model: 'm',
  instructions: '',
  tools: [],
  ...change,
});
const resolved = (change: Partial<AgentDefinition>, prices = {}) =>
  resolveConfig({ agents: [agent(change)], prices }, null).agents[0]!;

describe('prices', () => {
  test('are kept as whole micro-USD for a million tokens; what is left out costs what it is part of', () => {
    expect(resolved({ prices: { input: 0.25, output: 2 } }).prices).toEqual({
      m: {
        inputMicroUsdPerM: 250_000,
        cachedInputMicroUsdPerM: 250_000,
        outputMicroUsdPerM: 2_000_000,
        reasoningMicroUsdPerM: 2_000_000,
      },
    });
  });

  test('of the config count for the model, and an agent’s own before them', () => {
    const table = { m: { input: 1, output: 1 }, other: { input: 9, output: 9 } };
    expect(resolved({}, table).prices?.['m']?.inputMicroUsdPerM).toBe(1_000_000);
    expect(resolved({ prices: { input: 3, output: 3 } }, table).prices?.['m']?.inputMicroUsdPerM).toBe(3_000_000);
    expect(resolved({ model: 'unknown' }, table).prices).toBeUndefined();
  });

  test.each([{ input: -1, output: 1 }, { input: 1 }, { input: 1, output: 1, cached: 1 }, { input: 1, output: 1e6 }])(
    '%# are checked',
    (prices) => {
      expect(pricesShape.safeParse(prices).success).toBe(false);
    },
  );
});

describe('a limit in USD', () => {
  const prices = { input: 1, output: 10 };

  test.each<[name: string, change: Partial<AgentDefinition>, maxMicroUsd: number | null]>([
    ['none without prices', {}, null],
    ['as it was given', { prices, limits: { maxUsd: 0.5 } }, 500_000],
    ['with prices, what all its tokens cost at the dearest', { prices, limits: { maxTokens: 1_000 } }, 10_000],
    ['none where tokens are free', { prices: { input: 0, output: 0 } }, null],
    ['none for an attended agent that says so', { prices, attended: true, limits: { maxUsd: null } }, null],
  ])('%s', (_name, change, maxMicroUsd) => {
    expect(resolved(change).limits.maxMicroUsd).toBe(maxMicroUsd);
  });

  test('without a price is refused when the config is loaded', () => {
    expect(() => resolved({ limits: { maxUsd: 1 } })).toThrow(
      'Agent a has a maxUsd, but no price of m is known: give the agent prices, or take maxUsd away.',
    );
  });

  test('may be taken away only where somebody watches', () => {
    expect(() => resolved({ prices, limits: { maxUsd: null } })).toThrow(
      'Agent a has no maxUsd; only an attended agent may run without it: set attended: true.',
    );
  });
});
