import { expect, test } from 'vitest';
import { resolveConfig } from '../../../worker/config/load.ts';
import { patienceShape } from '../../../worker/config/patience.ts';
import { DEFAULT_PATIENCE, patienceOf } from '../../../workflows/core/policy.ts';

const AGENT = { name: 'a', model: 'm', instructions: '', tools: [] };
const storedOf = (patience: object) => resolveConfig({ agents: [{ ...AGENT, patience }] }, null).agents[0]!;

// Trap: a default that is stored with the agent changes its hash, and is carried in each history.
test('of an agent is stored as it says it, and nothing more', () => {
  const stored = storedOf({ stallMs: 60_000, authDelaysMs: [] });
  expect(stored.patience).toEqual({ stallMs: 60_000, authDelaysMs: [] });
  expect(patienceOf(stored)).toEqual({ ...DEFAULT_PATIENCE, stallMs: 60_000, authDelaysMs: [] });
  expect(resolveConfig({ agents: [AGENT] }, null).agents[0]).not.toHaveProperty('patience');
});

test('everything that is a default is allowed', () => {
  expect(patienceShape.safeParse(DEFAULT_PATIENCE).success).toBe(true);
});

test.each<[field: string, value: unknown, why: string]>([
  ['transportDelaysMs', [], 'give 1 to 100 delays, each in whole milliseconds up to 86400000'],
  ['transportDelaysMs', 2_000, 'give 1 to 100 delays, each in whole milliseconds up to 86400000'],
  ['authDelaysMs', [1.5], 'give 0 to 100 delays, each in whole milliseconds up to 86400000'],
  ['transportAttempts', 0, 'give a whole number, from 1 to 100'],
  ['rateLimitAttempts', Number.POSITIVE_INFINITY, 'give a whole number, from 0 to 100'],
  ['parkMaxMs', null, 'give whole milliseconds, from 1 to 2592000000'],
  // The HTTP client has a clock of its own.
  ['stallMs', 300_001, 'give whole milliseconds, from 1 to 300000'],
  ['flushWaitMs', -1, 'give whole milliseconds, from 1 to 300000'],
])('%s: %j is refused in one sentence', (field, value, why) => {
  const checked = patienceShape.safeParse({ [field]: value });
  expect(checked.error?.issues[0]).toMatchObject({ path: expect.arrayContaining([field]), message: why });
});

test('a number that there is not is refused', () => {
  expect(patienceShape.safeParse({ stall: 1 }).error?.issues).toMatchObject([{ code: 'unrecognized_keys' }]);
});
