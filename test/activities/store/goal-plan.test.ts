import { describe, expect, test } from 'vitest';
import {
  type GoalWish,
  type JudgeCheck,
  planChange,
  planGoal,
  usualMicroUsd,
} from '../../../activities/store/goal-plan.ts';
import { POLICY } from '../../../workflows/core/policy.ts';
import { AGENT } from './seed.ts';

const DOLLAR = 1_000_000;
const price = (input: number, output: number) => ({
  inputMicroUsdPerM: input * DOLLAR,
  cachedInputMicroUsdPerM: input * DOLLAR,
  outputMicroUsdPerM: output * DOLLAR,
  reasoningMicroUsdPerM: output * DOLLAR,
});
const PRICED = { ...AGENT, prices: { m: price(1, 4), strict: price(2, 8) } };
const judgeCheck: JudgeCheck = (_, { tool }) =>
  tool === 'ci_status' ? { ok: true } : { ok: false, why: `${tool} can check nothing.` };
const plan = (wish: GoalWish, agent = AGENT) => {
  const planned = planGoal(agent, wish, judgeCheck);
  return planned.kind === 'planned' ? planned.goal : planned.why;
};
const USUAL = { turns: 50, tokens: 2_000_000, runningMs: 24 * 3_600_000 };

describe('a wish', () => {
  test('that says nothing is finite in everything, in dollars too where all prices are known', () => {
    expect(plan({})).toEqual({ checks: [], judge: {}, sceptics: 1, budget: { ...USUAL, microUsd: null } });
    expect(plan({}, PRICED)).toMatchObject({ budget: { ...USUAL, microUsd: 8 * DOLLAR } });
    expect(plan({ judge: { model: 'strict' } }, PRICED)).toMatchObject({ budget: { microUsd: 16 * DOLLAR } });
    expect(plan({ judge: { model: 'unknown' } }, PRICED)).toMatchObject({ budget: { microUsd: null } });
    expect(plan({ budget: { tokens: 1_000, usd: 0.5, hours: 0.5 } }, PRICED)).toMatchObject({
      budget: { turns: 50, tokens: 1_000, runningMs: 1_800_000, microUsd: DOLLAR / 2 },
    });
  });

  test('is filled in: time limits and arguments of checks', () => {
    expect(
      plan({ checks: ['npm test', { command: 'make', timeoutSeconds: 9 }, { tool: 'ci_status', expect: null }] }),
    ).toMatchObject({
      checks: [
        { command: 'npm test', timeoutSeconds: 300 },
        { command: 'make', timeoutSeconds: 9 },
        { tool: 'ci_status', arguments: {}, expect: null, timeoutSeconds: 300 },
      ],
    });
  });

  test.each<[GoalWish, string]>([
    [{ checks: [{ tool: 'shell' }] }, 'shell can check nothing.'],
    [{ checks: [' '] }, 'A check has no command: write the command line.'],
    [{ checks: [{ command: 'x', timeoutSeconds: 0 }] }, 'A check may take 1 to 3600 seconds.'],
    [{ checks: Array.from({ length: 11 }, () => 'x') }, 'A goal may have 10 checks: put several into one script.'],
    [{ sceptics: 6 }, 'A goal may have 1 to 5 sceptics.'],
    [{ budget: { turns: 2.5 } }, "A budget of 2.5 turns can't be kept: give a whole number above 0."],
    [{ budget: { tokens: Infinity } }, "A budget of Infinity tokens can't be kept: give a whole number above 0."],
    [{ budget: { hours: NaN } }, "A budget of NaN hours can't be kept: give a number above 0, or leave it out."],
    [{ budget: { hours: 0 } }, "A budget of 0 hours can't be kept: give a number above 0, or leave it out."],
    [{ budget: { usd: Infinity } }, "A budget of Infinity USD can't be kept: give a number above 0, or leave it out."],
    [{ budget: { usd: 1e300 } }, "A budget of 1e+300 USD can't be kept: give a number above 0, or leave it out."],
    [{ budget: { usd: -1 } }, "A budget of -1 USD can't be kept: give a number above 0, or leave it out."],
    [
      { budget: { usd: 1 } },
      'No price of m is known, so a budget in USD could not be kept: give agent tester prices in the config, or leave it out.',
    ],
  ])('%j is refused', (wish, sentence) => {
    expect(plan(wish)).toBe(sentence);
  });
});

test('a change is judged the same, and names only what changes', () => {
  const change = (wish: GoalWish) => planChange({ agent: AGENT, judge: {} }, wish, judgeCheck);
  expect(change({ budget: { turns: 3 } })).toEqual({ kind: 'planned', checks: null, budget: { turns: 3 } });
  expect(change({ checks: [] })).toEqual({ kind: 'planned', checks: [], budget: {} });
  expect(change({ checks: [{ tool: 'shell' }] })).toEqual({ kind: 'refused', why: 'shell can check nothing.' });
  expect(change({ budget: { usd: 1 } })).toMatchObject({ kind: 'refused' });
});

test('the usual dollars are what the tokens may cost at most', () => {
  expect(usualMicroUsd({ agent: PRICED, judge: {} }, POLICY.goal.tokens)).toBe(8 * DOLLAR);
});
