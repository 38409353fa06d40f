import { describe, expect, test } from 'vitest';
import type { End } from '../../workflows/core/ends.ts';
import { limitReached } from '../../workflows/core/limits.ts';
import { nextStep, type Step } from '../../workflows/core/next-step.ts';
import { NO_USAGE } from '../../workflows/core/sample-outcome.ts';
import type { TurnState } from '../../workflows/core/turn-state.ts';
import { chargedTokens } from '../../workflows/core/usage.ts';
import { batch, CANCEL, CANCELLED, COMPLETED, ref, T0, turn } from './fixtures.ts';

const resting = { kind: 'resting', untilMs: T0 + 500, cause: 'stalled' } as const;
const gated = {
  kind: 'batch',
  calls: [
    { ref: ref(0), state: 'queued' },
    { ref: ref(1, { verdict: 'gate' }), state: 'queued' },
  ],
  fuse: null,
} as const;

const asking = {
  kind: 'batch',
  calls: [{ ref: ref(0), state: 'asking', approval: 'apr', untilMs: T0 + 500 }],
  fuse: null,
} as const;

const cut = {
  kind: 'batch',
  calls: [
    { ref: ref(0), state: 'ok' },
    { ref: ref(1, { effect: 'once', undo: 'declared' }), state: 'unknown' },
  ],
  fuse: null,
} as const;
const INTERRUPTED: End = {
  reason: 'INTERRUPTED',
  detail: 'terminated',
  decidedBy: 'user',
  signal: { name: 'engine', event: 'terminated' },
  phase: 'tools',
};

describe('the next step', () => {
  test.each<[name: string, state: TurnState, step: Step]>([
    [
      'a ready turn samples, with all that its next commit appends',
      turn({ inbox: ['a', 'b'], unappendedResults: 2, reminders: ['todo'], transition: 'tool_results' }),
      {
        kind: 'sample',
        inputs: ['a', 'b'],
        results: 2,
        reminders: ['todo'],
        transition: 'tool_results',
        watchRepetition: true,
        model: 'primary',
        outputTokens: 8_192,
        onCut: 'drop',
        schema: 'none',
      },
    ],
    [
      'a model that repeated itself twice is asked once more, and taken as it is',
      turn({ tries: { doom: 2 }, transition: 'resampled_doom_loop' }),
      {
        kind: 'sample',
        inputs: ['in_1'],
        results: 0,
        reminders: [],
        transition: 'resampled_doom_loop',
        watchRepetition: false,
        model: 'primary',
        outputTokens: 8_192,
        onCut: 'drop',
        schema: 'none',
      },
    ],
    [
      'a compaction compacts',
      turn({ phase: { kind: 'compacting', cause: 'overflow' } }),
      { kind: 'compact', cause: 'overflow' },
    ],
    [
      'a compaction that rests waits',
      turn({ phase: { kind: 'compaction_resting', untilMs: T0 + 500, cause: 'window' } }),
      { kind: 'rest', forMs: 500 },
    ],
    [
      'a compaction costs money too: none behind a limit',
      turn({ phase: { kind: 'compacting', cause: 'window' }, asked: null, limits: { maxSteps: 0 } }),
      {
        kind: 'finish',
        end: {
          reason: 'ABORTED',
          detail: 'max_steps',
          decidedBy: 'runtime',
          signal: { name: 'limit', limit: 'steps', allowed: 0, used: 0 },
          phase: 'compacting',
        },
      },
    ],
    ['a batch runs', turn({ phase: batch('queued', 'running') }), { kind: 'runTools' }],
    ['a call with a gate is asked about first', turn({ phase: gated }), { kind: 'gate', ordinal: 1 }],
    ['a rest lasts until its time', turn({ phase: resting }), { kind: 'rest', forMs: 500 }],
    [
      'a rest that is over does not go backwards',
      turn({ phase: { ...resting, untilMs: T0 - 1 } }),
      { kind: 'rest', forMs: 0 },
    ],
    // Trap: a quota that parks for a day would hold a turn past its own absolute end.
    [
      'a rest ends with the turn’s absolute end',
      turn({ phase: resting, limits: { notAfterMs: T0 + 20 } }),
      { kind: 'rest', forMs: 20 },
    ],
    [
      'an approval is waited for until its time',
      turn({ phase: asking }),
      { kind: 'awaitDecision', ordinal: 0, approval: 'apr', forMs: 500 },
    ],
    // Trap: an approval may wait for days, and nobody is asked in the meantime whether a limit is reached.
    [
      'but no longer than to the turn’s absolute end',
      turn({ phase: asking, limits: { notAfterMs: T0 + 20 } }),
      { kind: 'awaitDecision', ordinal: 0, approval: 'apr', forMs: 20 },
    ],
    [
      'which ends it, undecided as it is',
      turn({ phase: asking, limits: { notAfterMs: T0 } }),
      {
        kind: 'finish',
        end: {
          reason: 'ABORTED',
          detail: 'deadline',
          decidedBy: 'runtime',
          signal: { name: 'limit', limit: 'not_after', allowed: T0, used: T0 },
          phase: 'gate',
        },
      },
    ],
    [
      'an absolute end stops no call that runs',
      turn({ phase: batch('running'), limits: { notAfterMs: T0 } }),
      { kind: 'runTools' },
    ],
    [
      'an end that is decided finishes',
      turn({ phase: { kind: 'ending', end: COMPLETED } }),
      { kind: 'finish', end: COMPLETED },
    ],
    [
      'a cancel finishes, whatever was next',
      turn({ phase: batch('queued'), asked: CANCEL }),
      { kind: 'finish', end: CANCELLED },
    ],
    // Trap: the reply of a sample that a cancel has not cut in time would turn the cancel into a completion.
    [
      'a cancel wins over an end that came after it',
      turn({ phase: { kind: 'ending', end: COMPLETED }, asked: CANCEL }),
      { kind: 'finish', end: CANCELLED },
    ],
    [
      'a cancel first takes back what it cut, in the time that cleaning up has',
      turn({ phase: cut, asked: { end: CANCELLED, atMs: T0 - 10_000 } }),
      { kind: 'undo', ordinals: [1], forMs: 20_000 },
    ],
    [
      'past that time it finishes as it is',
      turn({ phase: cut, asked: { end: CANCELLED, atMs: T0 - 30_000 } }),
      { kind: 'finish', end: CANCELLED },
    ],
    // What a turn has decided itself was not cut in the middle.
    [
      'an interruption takes nothing back',
      turn({ phase: cut, asked: { end: INTERRUPTED, atMs: T0 } }),
      { kind: 'finish', end: INTERRUPTED },
    ],
    [
      'a cancel wins over a limit',
      turn({ limits: { maxSteps: 0 }, asked: CANCEL }),
      { kind: 'finish', end: CANCELLED },
    ],
    // A batch is over before a limit is looked at: its results may not be lost.
    ['a limit does not end a batch', turn({ phase: batch('queued'), limits: { maxSteps: 0 } }), { kind: 'runTools' }],
  ])('%s', (_name, state, step) => {
    expect(nextStep(state, T0)).toEqual(step);
  });
});

describe('a limit is used up when spent ≥ limit', () => {
  const usage = { ...NO_USAGE, inputTokens: 100, cachedTokens: 40, outputTokens: 10 };
  test.each<
    [name: string, state: TurnState, detail: End['detail'] | null, limit: string, allowed: number, used: number]
  >([
    ['steps', turn({ step: 3, limits: { maxSteps: 3 } }), 'max_steps', 'steps', 3, 3],
    ['one step left', turn({ step: 2, limits: { maxSteps: 3 } }), null, '', 0, 0],
    ['tokens', turn({ usage, limits: { maxTokens: 70 } }), 'budget', 'tokens', 70, 70],
    ['one token left', turn({ usage, limits: { maxTokens: 71 } }), null, '', 0, 0],
    [
      'USD',
      turn({ usage: { ...usage, microUsd: 120_000 }, limits: { maxMicroUsd: 120_000 } }),
      'budget',
      'usd',
      0.12,
      0.12,
    ],
    [
      'a micro-dollar left',
      turn({ usage: { ...usage, microUsd: 119_999 }, limits: { maxMicroUsd: 120_000 } }),
      null,
      '',
      0,
      0,
    ],
    // Trap: a provider that never tells its usage would run for ever on any budget.
    [
      'USD, by what unknown usage may have cost',
      turn({
        usage: { ...usage, complete: false, microUsd: 20_000, heldMicroUsd: 110_000 },
        limits: { maxMicroUsd: 120_000 },
      }),
      'budget',
      'usd',
      0.12,
      0.13,
    ],
    ['no price, so no budget', turn({ usage: { ...usage, microUsd: null } }), null, '', 0, 0],
    ['running time', turn({ runningMs: 60, limits: { maxRunningMs: 60 } }), 'deadline', 'running_ms', 60, 60],
    ['1 ms left', turn({ runningMs: 59, limits: { maxRunningMs: 60 } }), null, '', 0, 0],
    ['absolute end', turn({ limits: { notAfterMs: T0 } }), 'deadline', 'not_after', T0, T0],
    ['1 ms before it', turn({ limits: { notAfterMs: T0 + 1 } }), null, '', 0, 0],
    [
      'no limits at all',
      turn({
        step: 1e6,
        runningMs: 1e12,
        limits: { maxSteps: null, maxTokens: null, maxMicroUsd: null, maxRunningMs: null },
      }),
      null,
      '',
      0,
      0,
    ],
    // The first that is used up is named: the order is part of the answer.
    [
      'tokens before USD',
      turn({ usage: { ...usage, microUsd: 1 }, limits: { maxTokens: 1, maxMicroUsd: 1 } }),
      'budget',
      'tokens',
      1,
      70,
    ],
    [
      'steps before tokens',
      turn({ step: 1, usage, limits: { maxSteps: 1, maxTokens: 1 } }),
      'max_steps',
      'steps',
      1,
      1,
    ],
  ])('%s', (_name, state, detail, limit, allowed, used) => {
    const end = detail && {
      reason: 'ABORTED',
      detail,
      decidedBy: 'runtime',
      signal: { name: 'limit', limit, allowed, used },
      phase: 'sampling',
    };
    expect(limitReached(state)).toEqual(end);
    expect(nextStep(state, T0)).toEqual(end ? { kind: 'finish', end } : expect.objectContaining({ kind: 'sample' }));
  });

  test('cached input is not charged, reasoning is part of the output', () => {
    expect(chargedTokens({ ...usage, reasoningTokens: 8 })).toBe(70);
  });
});
