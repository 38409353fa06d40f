import { describe, expect, test } from 'vitest';
import { NO_USAGE, type TokenUsage } from '../../workflows/core/sample-outcome.ts';
import {
  addUsage,
  chargedMicroUsd,
  costMicroUsd,
  type ModelPrices,
  priced,
  worstMicroUsd,
} from '../../workflows/core/usage.ts';
import { USAGE } from './fixtures.ts';

/** 2, 0.5, 8 and 10 USD for a million tokens. */
const PRICES: ModelPrices = {
  inputMicroUsdPerM: 2_000_000,
  cachedInputMicroUsdPerM: 500_000,
  outputMicroUsdPerM: 8_000_000,
  reasoningMicroUsdPerM: 10_000_000,
};

const tokens = (
  inputTokens: number,
  cachedTokens: number,
  outputTokens: number,
  reasoningTokens: number,
): TokenUsage => ({ inputTokens, cachedTokens, outputTokens, reasoningTokens, complete: true });

describe('cost, in micro-USD', () => {
  test.each<[name: string, used: TokenUsage, microUsd: number]>([
    ['nothing', tokens(0, 0, 0, 0), 0],
    ['input', tokens(1_000, 0, 0, 0), 2_000],
    ['cached input is part of the input', tokens(1_000, 400, 0, 0), 1_400],
    ['output', tokens(0, 0, 100, 0), 800],
    ['reasoning is part of the output', tokens(0, 0, 100, 30), 860],
    // Some providers report reasoning beside the output: it may not make the rest negative.
    ['more reasoning than output', tokens(0, 0, 10, 30), 300],
    ['more cached than input', tokens(10, 30, 0, 0), 15],
    ['all of it', tokens(1_000, 400, 100, 30), 2_260],
    ['a part of a micro-dollar is charged whole', tokens(1, 1, 0, 0), 1],
    // A whole budget of the default size at a dear price stays exact.
    ['two million tokens', tokens(2_000_000, 0, 0, 0), 4_000_000],
  ])('%s', (_name, used, microUsd) => {
    expect(costMicroUsd(used, PRICES)).toBe(microUsd);
  });

  test('the worst case is all input at full price and the whole output cap at the dearer one', () => {
    expect(worstMicroUsd({ inputTokens: 1_000, outputTokens: 100 }, PRICES)).toBe(3_000);
  });
});

describe('the usage of one request', () => {
  const used = tokens(1_000, 0, 100, 0);
  test.each([
    ['known: what it cost', used, { microUsd: 2_800, heldMicroUsd: 0, complete: true }],
    [
      'told in part: that, and the rest of the worst case is held',
      { ...used, complete: false },
      { microUsd: 2_800, heldMicroUsd: 2_200, complete: false },
    ],
    [
      'never told: all of the worst case is held',
      { ...tokens(0, 0, 0, 0), complete: false },
      { microUsd: 0, heldMicroUsd: 5_000, complete: false },
    ],
    [
      'more than the worst case: nothing is taken back',
      { ...tokens(1_000_000, 0, 0, 0), complete: false },
      { microUsd: 2_000_000, heldMicroUsd: 0, complete: false },
    ],
  ])('%s', (_name, usage, expected) => {
    expect(priced(usage, PRICES, 5_000)).toMatchObject(expected);
    expect(chargedMicroUsd(priced(usage, PRICES, 5_000))).toBe(expected.microUsd + expected.heldMicroUsd);
  });

  test('without a price it has no cost, which is not the same as zero', () => {
    expect(priced({ ...used, complete: false }, null, null)).toMatchObject({ microUsd: null, heldMicroUsd: 0 });
  });
});

test('usage adds up; a part that is incomplete or has no price makes the sum so for good', () => {
  const paid = { ...USAGE, microUsd: 7, heldMicroUsd: 2 };
  expect(addUsage(paid, paid)).toEqual({
    inputTokens: 200,
    cachedTokens: 80,
    outputTokens: 20,
    reasoningTokens: 6,
    complete: true,
    microUsd: 14,
    heldMicroUsd: 4,
  });
  expect(addUsage({ ...NO_USAGE, complete: false }, paid)).toEqual({ ...paid, complete: false });
  expect(addUsage({ ...NO_USAGE, microUsd: null }, paid)).toEqual({ ...paid, microUsd: null });
});
