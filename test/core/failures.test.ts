import { describe, expect, test } from 'vitest';
import type { End } from '../../workflows/core/ends.ts';
import { afterFailure } from '../../workflows/core/failures.ts';
import type { ProviderFailure } from '../../workflows/core/sample-outcome.ts';
import type { Tries } from '../../workflows/core/turn-state.ts';
import { changed, T0, turn } from './fixtures.ts';

const HOUR = 3_600_000;
const transport: ProviderFailure = { kind: 'transport', cause: 'reset' };
const overloaded = (afterMs: number | null): ProviderFailure => ({ kind: 'overloaded', status: 529, afterMs });
const serverError = (final: boolean): ProviderFailure => ({ kind: 'server_error', status: 502, final });
const limited = (afterMs: number | null, quota = false): ProviderFailure => ({ kind: 'rate_limited', afterMs, quota });
const auth: ProviderFailure = { kind: 'auth', status: 401 };

type Rests = [name: string, failure: ProviderFailure, tries: Partial<Tries>, forMs: number, spent: Partial<Tries>];

describe('rests on a durable timer, one budget spent', () => {
  test.each<Rests>([
    ['transport, first', transport, {}, 2_000, { transport: 1 }],
    ['transport, second', transport, { transport: 1 }, 4_000, { transport: 2 }],
    ['transport, third', transport, { transport: 2 }, 8_000, { transport: 3 }],
    ['transport, fourth', transport, { transport: 3 }, 16_000, { transport: 4 }],
    ['transport, fifth', transport, { transport: 4 }, 30_000, { transport: 5 }],
    ['transport, last', transport, { transport: 13 }, 30_000, { transport: 14 }],
    ['stalled', { kind: 'stalled' }, { transport: 1 }, 4_000, { transport: 2 }],
    ['server error', serverError(false), {}, 2_000, { transport: 1 }],
    ['overloaded, no word how long', overloaded(null), {}, 2_000, { transport: 1, overloads: 1 }],
    ['overloaded, asked for more than the delay', overloaded(50_000), {}, 50_000, { transport: 1, overloads: 1 }],
    ['overloaded, asked for less', overloaded(100), {}, 2_000, { transport: 1, overloads: 1 }],
    ['overloaded for just 120 s waits in the step', overloaded(120_000), {}, 120_000, { transport: 1, overloads: 1 }],
    // Trap: days in a Retry-After would be waited out fifteen times, since rests are not running time.
    ['overloaded for more parks', overloaded(HOUR), { transport: 14 }, HOUR, { parkedMs: HOUR, overloads: 1 }],
    ['429, first', limited(7_000), {}, 7_000, { rateLimit: 1 }],
    ['429, second', limited(7_000), { rateLimit: 1 }, 7_000, { rateLimit: 2 }],
    ['429, no word how long', limited(null), {}, 20_000, { rateLimit: 1 }],
    ['429, at once', limited(0), {}, 0, { rateLimit: 1 }],
    ['429 of just 120 s waits in the step', limited(120_000), {}, 120_000, { rateLimit: 1 }],
    ['429 of more parks, and spends no try', limited(120_001), { rateLimit: 2 }, 120_001, { parkedMs: 120_001 }],
    ['a quota parks', limited(HOUR, true), { rateLimit: 2, parkedMs: HOUR }, HOUR, { parkedMs: 2 * HOUR }],
    ['a quota parks up to 24 h in all', limited(HOUR, true), { parkedMs: 23 * HOUR }, HOUR, { parkedMs: 24 * HOUR }],
    // Trap: Retry-After: 0 with a used-up quota would ask the provider without a pause, for ever.
    ['a quota without a wait rests all the same', limited(0, true), {}, 20_000, { parkedMs: 20_000 }],
    ['auth, first', auth, {}, 1_000, { auth: 1 }],
    ['auth, second', auth, { auth: 1 }, 2_000, { auth: 2 }],
    ['auth, third', auth, { auth: 2 }, 4_000, { auth: 3 }],
  ])('%s', (_name, failure, tries, forMs, spent) => {
    const state = turn({ tries });
    expect(changed(state, afterFailure(state, failure, 0.5))).toEqual({
      phase: { kind: 'resting', untilMs: T0 + forMs, cause: failure.kind },
      // Each budget is its own: the others stay as they were.
      tries: { ...state.tries, ...spent },
    });
  });

  test.each([
    [0, 1],
    [1, 2],
  ])('a doom loop, after %d: asked for anew at once, under a new key', (before, doom) => {
    const state = turn({ resample: 4, tries: { transport: 3, auth: 1, doom: before } });
    expect(changed(state, afterFailure(state, { kind: 'doom_loop' }, 0.5))).toEqual({
      resample: 5,
      tries: { ...state.tries, doom },
      transition: 'resampled_doom_loop',
    });
  });

  test.each<[dice: number, forMs: number]>([
    [0, 1_600],
    [0.25, 1_800],
    [0.5, 2_000],
    [0.999_999, 2_400],
  ])('the dice spread the delay by at most 20 %% (%d → %d ms)', (dice, forMs) => {
    expect(afterFailure(turn(), transport, dice).phase).toMatchObject({ untilMs: T0 + forMs });
  });
});

type Ends = [
  name: string,
  failure: ProviderFailure,
  tries: Partial<Tries>,
  end: Pick<End, 'reason' | 'detail' | 'signal'>,
  resumeMs?: number,
];
const spent = (cause: string, used: number) =>
  ({ reason: 'ERROR', detail: 'provider_unavailable', signal: { name: 'retries_spent', cause, used } }) as const;
const refused = (cause: string, status: number) =>
  ({ reason: 'ERROR', detail: 'invalid_request', signal: { name: 'provider_answer', cause, status } }) as const;

describe('ends, with nothing spent', () => {
  test.each<Ends>([
    ['the 15th transport failure', transport, { transport: 14 }, spent('transport', 15)],
    ['the 15th stall', { kind: 'stalled' }, { transport: 14 }, spent('stalled', 15)],
    ['the 15th overload', overloaded(1), { transport: 14 }, spent('overloaded', 15)],
    ['the 15th server error', serverError(false), { transport: 14 }, spent('server_error', 15)],
    // x-should-retry: false
    ['a server error that says it is final', serverError(true), {}, spent('server_error', 1)],
    ['a third 429', limited(1_000), { rateLimit: 2 }, spent('rate_limited', 3)],
    ['a wait of more than 24 h', limited(24 * HOUR + 1), {}, spent('rate_limited', 1), 24 * HOUR + 1],
    ['overloaded for more than 24 h', overloaded(24 * HOUR + 1), {}, spent('overloaded', 1), 24 * HOUR + 1],
    // Trap: an hour that no clock knows can't be written down, and the end would be tried for ever.
    ['a wait of a thousand years', limited(1e15), {}, spent('rate_limited', 1), 366 * 24 * HOUR],
    // Trap: short quotas that never end would hold a turn for ever, since rests are not running time.
    ['parked for 24 h in all', limited(HOUR, true), { parkedMs: 24 * HOUR }, spent('rate_limited', 1), HOUR],
    [
      'a fourth 401',
      auth,
      { auth: 3 },
      {
        reason: 'ERROR',
        detail: 'auth',
        signal: { name: 'provider_answer', cause: 'auth', status: 401 },
      },
    ],
    // Nobody watches any more by then, so a third one is a fault; it must be bounded all the same.
    [
      'a third doom loop',
      { kind: 'doom_loop' },
      { doom: 2 },
      { reason: 'ERROR', detail: 'model', signal: { name: 'retries_spent', cause: 'doom_loop', used: 3 } },
    ],
    ['an invalid request', { kind: 'invalid_request', status: 422 }, {}, refused('invalid_request', 422)],
  ])('%s', (_name, failure, tries, end, resumeMs = 5 * 60_000) => {
    const state = turn({ tries, outage: { inStep: 3, inTurn: 3, sinceMs: null } });
    const resume = end.detail === 'provider_unavailable' ? { resumeAtMs: T0 + resumeMs } : {};
    expect(changed(state, afterFailure(state, failure, 0.5))).toEqual({
      phase: { kind: 'ending', end: { ...end, decidedBy: 'runtime', phase: 'sampling', ...resume } },
    });
  });

  test.each<[name: string, failure: ProviderFailure, tries: Partial<Tries>]>([
    ['transport', transport, { doom: 2, rateLimit: 2, auth: 3, empty: 2, cutCalls: 5, parkedMs: 24 * HOUR }],
    ['429', limited(1), { transport: 14, auth: 3, empty: 2, cutCalls: 5, parkedMs: 24 * HOUR }],
    ['a doom loop', { kind: 'doom_loop' }, { transport: 14, rateLimit: 2, auth: 3, empty: 2, cutCalls: 5 }],
    ['auth', auth, { transport: 14, rateLimit: 2, empty: 2, cutCalls: 5, parkedMs: 24 * HOUR }],
    ['quota', limited(1, true), { transport: 14, rateLimit: 2, auth: 3, empty: 2, cutCalls: 5 }],
  ])('%s goes on when every other budget is used up', (_name, failure, tries) => {
    expect(afterFailure(turn({ tries }), failure, 0.5).phase.kind).not.toBe('ending');
  });
});
