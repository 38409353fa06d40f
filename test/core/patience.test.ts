import { describe, expect, test } from 'vitest';
import { apply } from '../../workflows/core/apply.ts';
import type { CompactOutcome } from '../../workflows/core/compact-outcome.ts';
import { afterFailure } from '../../workflows/core/failures.ts';
import { DEFAULT_LIMITS, DEFAULT_PATIENCE, type Patience } from '../../workflows/core/policy.ts';
import { NO_USAGE, type ProviderFailure } from '../../workflows/core/sample-outcome.ts';
import type { Outage } from '../../workflows/core/turn-counters.ts';
import type { Tries } from '../../workflows/core/turn-state.ts';
import { changed, endOf, T0, turn } from './fixtures.ts';

const HOUR = 3_600_000;

// What people are promised: a change of one of these is a change of the product.
test('the limits of a turn, where nobody says other ones', () => {
  expect(DEFAULT_LIMITS).toEqual({
    maxSteps: 100,
    maxTokens: 2_000_000,
    maxMicroUsd: null,
    maxRunningMs: 6 * HOUR,
    notAfterMs: null,
    outputTokens: 8_192,
    raisedOutputTokens: 65_536,
    contextTokens: 128_000,
    workspaceWaitMs: HOUR,
  });
});

test('the patience with a provider, where nobody says another one', () => {
  expect(DEFAULT_PATIENCE).toEqual({
    transportDelaysMs: [2_000, 4_000, 8_000, 16_000, 30_000],
    transportAttempts: 15,
    transientDelaysMs: [2_000, 10_000, 30_000],
    transientPerTurn: 10,
    outageMs: 600_000,
    rateLimitAttempts: 2,
    rateLimitWaitMs: 20_000,
    rateLimitWaitMaxMs: 120_000,
    parkMaxMs: 24 * HOUR,
    authDelaysMs: [1_000, 2_000, 4_000],
    overloadsInARow: 3,
    resumeAfterMs: 300_000,
    stallMs: 300_000,
    totalMs: HOUR,
    usageWaitMs: 10_000,
    flushWaitMs: 5_000,
  });
});

const stalled: ProviderFailure = { kind: 'stalled' };
const auth: ProviderFailure = { kind: 'auth', status: 401 };
const overloaded: ProviderFailure = { kind: 'overloaded', status: 529, afterMs: null };
const limited = (afterMs: number | null, quota = false): ProviderFailure => ({ kind: 'rate_limited', afterMs, quota });
const outage = (inStep: number, inTurn: number): Outage => ({ inStep, inTurn, sinceMs: T0 - 50 });

interface Spent {
  readonly tries?: Partial<Tries>;
  readonly outage?: Outage;
}

describe('an agent’s own patience', () => {
  const ended = (resumeMs: number) => ({ endsAfterMs: resumeMs });

  test.each<
    [
      said: Partial<Patience>,
      failure: ProviderFailure,
      spent: Spent,
      what: { restsMs: number } | { endsAfterMs: number },
    ]
  >([
    [{ transportDelaysMs: [7, 9] }, stalled, {}, { restsMs: 7 }],
    [{ transportDelaysMs: [7, 9] }, stalled, { tries: { transport: 5 } }, { restsMs: 9 }],
    [{ transportAttempts: 3 }, stalled, { tries: { transport: 2 } }, { restsMs: 2_000 }],
    [{ transportAttempts: 1, transientDelaysMs: [] }, stalled, {}, ended(300_000)],
    [{ transportAttempts: 1, transientDelaysMs: [5, 6] }, stalled, { outage: outage(1, 1) }, { restsMs: 6 }],
    [{ transportAttempts: 1, transientPerTurn: 1 }, stalled, { outage: outage(0, 1) }, ended(300_000)],
    [{ transportAttempts: 1, outageMs: 40 }, stalled, { outage: outage(0, 0) }, ended(300_000)],
    [{ transportAttempts: 1, transientDelaysMs: [], resumeAfterMs: 9 }, stalled, {}, ended(9)],
    [{ rateLimitWaitMs: 3 }, limited(null), {}, { restsMs: 3 }],
    [{ rateLimitAttempts: 0 }, limited(4), {}, ended(300_000)],
    [{ rateLimitWaitMaxMs: 4, parkMaxMs: 9 }, limited(5), { tries: { rateLimit: 2, parkedMs: 4 } }, { restsMs: 5 }],
    [{ rateLimitWaitMaxMs: 4, parkMaxMs: 8 }, limited(5), { tries: { parkedMs: 4 } }, ended(300_000)],
    [{ authDelaysMs: [3] }, auth, {}, { restsMs: 3 }],
  ])('%j', (said, failure, spent, what) => {
    const after = afterFailure(turn({ rules: { patience: said }, ...spent }), failure, 0.5);
    if ('restsMs' in what) expect(after.phase).toMatchObject({ kind: 'resting', untilMs: T0 + what.restsMs });
    else expect(endOf(after)).toMatchObject({ detail: 'provider_unavailable', resumeAtMs: T0 + what.endsAfterMs });
  });

  test('with a key: as often as there are rests', () => {
    const state = turn({ rules: { patience: { authDelaysMs: [3] } }, tries: { auth: 1 } });
    expect(endOf(afterFailure(state, auth, 0.5))).toMatchObject({ reason: 'ERROR', detail: 'auth' });
  });

  test('with overloads, until the other model takes over', () => {
    const rules = { fallback: 'named', patience: { overloadsInARow: 1 } } as const;
    expect(afterFailure(turn({ rules }), overloaded, 0.5)).toMatchObject({ model: 'fallback' });
  });

  test.each<[outcome: CompactOutcome, forMs: number]>([
    [{ kind: 'empty', usage: NO_USAGE }, 7],
    [{ ...limited(null), usage: NO_USAGE } as CompactOutcome, 11],
    [{ ...auth, usage: NO_USAGE } as CompactOutcome, 13],
  ])('counts for summaries too: %j', (outcome, forMs) => {
    const patience = { transportDelaysMs: [7], rateLimitWaitMs: 11, authDelaysMs: [13] };
    const state = turn({ rules: { patience }, phase: { kind: 'compacting', cause: 'window' } });
    const after = apply(state, { kind: 'compacted', outcome, dice: 0.5, atMs: T0 });
    expect(changed(state, after).phase).toMatchObject({ kind: 'compaction_resting', untilMs: T0 + forMs });
  });
});
