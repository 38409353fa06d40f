import { expect, test } from 'vitest';
import { costText, costWords, usd } from '../../../client/cli/cost-text.ts';
import type { CostReport, UsageSum } from '../../../client/index.ts';
import { NO_USAGE } from '../../../workflows/core/sample-outcome.ts';

test.each([
  [0, '$0.00'],
  [1, '< $0.0001'],
  [100, '$0.0001'],
  [12_300, '$0.0123'],
  [120_000, '$0.12'],
  [1_234_567, '$1.23'],
])('%d micro-USD is %s', (microUsd, text) => {
  expect(usd(microUsd)).toBe(text);
});

// What is not known is never shown as zero.
test.each([
  [{ microUsd: 120_000, complete: true }, '$0.12'],
  [{ microUsd: 120_000, complete: false }, '≥ $0.12, incomplete'],
  [{ microUsd: 0, complete: false }, '≥ $0.00, incomplete'],
  [{ microUsd: null, complete: true }, 'no price known'],
  [{ microUsd: null, complete: false }, 'no price known, incomplete'],
])('%j reads %j', (usage, words) => {
  expect(costWords(usage)).toBe(words);
});

const sum = (change: Partial<UsageSum>): UsageSum => ({
  ...NO_USAGE,
  requests: 1,
  incomplete: 0,
  wasted: 0,
  wastedMicroUsd: 0,
  inputTokens: 100,
  outputTokens: 10,
  microUsd: 200,
  ...change,
});
const of = (...models: [string, UsageSum][]): CostReport => ({
  ...sum({ requests: models.length, microUsd: 200 * models.length }),
  models: models.map(([model, each]) => ({ model, ...each })),
});

test.each([
  [of(), 'No model request was made.'],
  [of(['m', sum({})]), 'm: $0.0002; 1 requests, 100 tokens in, 10 out'],
  [
    of([
      'm',
      sum({ complete: false, incomplete: 1, heldMicroUsd: 5_000, wasted: 1, wastedMicroUsd: 100, cachedTokens: 4 }),
    ]),
    'm: ≥ $0.0002, incomplete (a budget counts up to $0.0050 more); 1 requests, 100 tokens in (4 cached), 10 out; 1 wasted, $0.0001; usage of 1 not known',
  ],
  [
    of(['m', sum({})], ['n', sum({ microUsd: null, wastedMicroUsd: null, wasted: 1, reasoningTokens: 3 })]),
    [
      'm: $0.0002; 1 requests, 100 tokens in, 10 out',
      'n: no price known; 1 requests, 100 tokens in, 10 out (3 reasoning); 1 wasted',
      'in all: $0.0004; 2 requests, 100 tokens in, 10 out',
    ].join('\n'),
  ],
])('%#', (report, text) => {
  expect(costText(report)).toBe(text);
});
