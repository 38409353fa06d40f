import { describe, expect, test } from 'vitest';
import { apply } from '../../workflows/core/apply.ts';
import { mayCompact } from '../../workflows/core/compaction.ts';
import { afterFailure } from '../../workflows/core/failures.ts';
import { nextStep } from '../../workflows/core/next-step.ts';
import type { ProviderFailure, SampleOutcome } from '../../workflows/core/sample-outcome.ts';
import type { TurnEvent } from '../../workflows/core/turn-event.ts';
import { FRESH_TRIES, type TurnState } from '../../workflows/core/turn-state.ts';
import { changed, endOf, ref, reply, T0, turn } from './fixtures.ts';

const sampled = (outcome: SampleOutcome, drained = 0): TurnEvent => ({
  kind: 'sampled',
  outcome,
  drained,
  dice: 0.5,
  atMs: T0,
});
const after = (state: TurnState, outcome: SampleOutcome) => apply(state, sampled(outcome));
const stalled: ProviderFailure = { kind: 'stalled' };
const overloaded: ProviderFailure = { kind: 'overloaded', status: 529, afterMs: null };
const spent = { transport: 14 };

describe('transport retries that are used up', () => {
  test.each<[name: string, failure: ProviderFailure]>([
    ['a stall', stalled],
    ['a transport error', { kind: 'transport', cause: 'reset' }],
    ['a 5xx', { kind: 'server_error', status: 502, final: false }],
    ['an overload', overloaded],
  ])('after %s begin anew, on a rest of their own', (_name, failure) => {
    const state = turn({ tries: { ...spent, auth: 2, rateLimit: 1 } });
    expect(changed(state, afterFailure(state, failure, 0.5))).toEqual({
      phase: { kind: 'resting', untilMs: T0 + 2_000, cause: 'outage' },
      tries: { ...FRESH_TRIES, auth: 2, rateLimit: 1 },
      outage: { inStep: 1, inTurn: 1, sinceMs: T0 },
    });
  });

  test.each<[inStep: number, forMs: number]>([
    [0, 2_000],
    [1, 10_000],
    [2, 30_000],
  ])('rest number %i of a step', (inStep, forMs) => {
    const state = turn({ tries: spent, outage: { inStep, inTurn: 3, sinceMs: T0 } });
    expect(afterFailure(state, stalled, 0.5).phase).toEqual({ kind: 'resting', untilMs: T0 + forMs, cause: 'outage' });
  });

  const MINUTE = 60_000;
  test.each<[name: string, state: TurnState]>([
    ['a fourth time in a step', turn({ tries: spent, outage: { inStep: 3, inTurn: 3, sinceMs: T0 } })],
    ['an eleventh time in a turn', turn({ tries: spent, outage: { inStep: 0, inTurn: 10, sinceMs: null } })],
    [
      'past ten minutes of one outage',
      turn({ tries: spent, outage: { inStep: 1, inTurn: 1, sinceMs: T0 + 9_999 - 10 * MINUTE } }),
    ],
    ['of a sub-agent', turn({ tries: spent, rules: { role: 'sub_agent' } })],
  ])('%s: ERROR/provider_unavailable, with a time to try again', (_name, state) => {
    expect(endOf(afterFailure(state, stalled, 0.5))).toEqual({
      reason: 'ERROR',
      detail: 'provider_unavailable',
      decidedBy: 'runtime',
      signal: { name: 'retries_spent', cause: 'stalled', used: 15 },
      phase: 'sampling',
      resumeAtMs: T0 + 5 * MINUTE,
    });
  });

  test('ten minutes to the millisecond still go on', () => {
    const state = turn({ tries: spent, outage: { inStep: 1, inTurn: 1, sinceMs: T0 + 10_000 - 10 * MINUTE } });
    expect(afterFailure(state, stalled, 0.5).phase.kind).toBe('resting');
  });

  test('a success ends the outage, a finished step gives its three back; the turn’s ten are never given back', () => {
    const outage = { inStep: 2, inTurn: 7, sinceMs: T0 };
    const calling = after(turn({ outage }), reply({ calls: [ref(0)] }));
    expect(calling.outage).toEqual({ inStep: 2, inTurn: 7, sinceMs: null });
    const returned = [
      { kind: 'call_started', ordinal: 0, atMs: T0 },
      { kind: 'call_finished', ordinal: 0, status: 'ok', atMs: T0 },
      { kind: 'batch_returned', atMs: T0 },
    ] as const;
    expect(returned.reduce<TurnState>(apply, calling).outage).toEqual({ inStep: 0, inTurn: 7, sinceMs: null });
    // Trap: a rerun of the same step is no new step.
    const rerun = turn({ outage, rules: { contract: { tools: ['push'], maxRetries: 2, baseMs: 1, maxMs: 1 } } });
    expect(after(rerun, reply()).outage).toEqual({ inStep: 2, inTurn: 7, sinceMs: null });
  });
});

describe('a model that is overloaded', () => {
  const named = { rules: { fallback: 'named' } } as const;

  test('the third time in a row: the other one takes over, under a new key', () => {
    const state = turn({ ...named, resample: 1, tries: { transport: 2, overloads: 2, auth: 1 } });
    expect(changed(state, afterFailure(state, overloaded, 0.5))).toEqual({
      model: 'fallback',
      resample: 2,
      tries: { ...FRESH_TRIES, auth: 1 },
      transition: 'model_switched',
    });
  });

  const contract = { tools: ['push'], maxRetries: 3, baseMs: 1, maxMs: 1 };
  test.each<[name: string, state: TurnState]>([
    ['the agent names no other', turn({ tries: { overloads: 2 } })],
    ['it was only the second time', turn({ ...named, tries: { overloads: 1 } })],
    ['the other one answers already', turn({ ...named, model: 'fallback', tries: { overloads: 8 } })],
    [
      'a contract is being recovered',
      turn({
        rules: { fallback: 'named', contract },
        contract: { succeeded: [], reruns: 1 },
        tries: { overloads: 2 },
      }),
    ],
  ])('stays where %s', (_name, state) => {
    expect(afterFailure(state, overloaded, 0.5)).toMatchObject({ model: state.model, phase: { kind: 'resting' } });
  });

  test.each<[name: string, failure: ProviderFailure]>([
    ['another failure', stalled],
    ['a 429', { kind: 'rate_limited', afterMs: 1, quota: false }],
    ['a 401', { kind: 'auth', status: 401 }],
    // Trap: what is asked for anew at once rests nowhere, and must end the row all the same.
    ['a doom loop', { kind: 'doom_loop' }],
    ['an overflow', { kind: 'overflow' }],
    ['a request that is too large', { kind: 'too_large' }],
  ])('%s in between breaks the row', (_name, failure) => {
    expect(afterFailure(turn({ ...named, tries: { overloads: 2 } }), failure, 0.5).tries.overloads).toBe(0);
  });

  test('a raised cap that is refused in between breaks the row', () => {
    const raised = turn({ ...named, tries: { overloads: 2 }, output: { cap: 'raised', continued: 0 } });
    expect(afterFailure(raised, { kind: 'invalid_request', status: 400 }, 0.5).tries.overloads).toBe(0);
  });

  test('the switch stays for the rest of the turn', () => {
    const switched = afterFailure(turn({ ...named, tries: { overloads: 2 } }), overloaded, 0.5);
    const later = after(after(switched, reply({ empty: true })), reply({ calls: [ref(0)] }));
    expect(later.model).toBe('fallback');
  });
});

describe('an output that its cap cuts', () => {
  const cut = (change: Partial<SampleOutcome & { kind: 'reply' }> = {}) => reply({ finish: 'length', ...change });

  test('raised once, then in pieces three times, then MAX_TOKENS with the raised cap in its evidence', () => {
    const seen: unknown[] = [];
    let state = turn({ limits: { outputTokens: 8, raisedOutputTokens: 64 } });
    for (let n = 0; n < 5; n += 1) {
      const step = nextStep(state, T0);
      if (step.kind !== 'sample') throw new Error(step.kind);
      seen.push([step.transition, step.outputTokens, step.onCut, step.reminders]);
      state = after(state, cut());
    }
    expect(seen).toEqual([
      ['opened', 8, 'drop', []],
      ['output_cap_raised', 64, 'keep', []],
      ['output_continued', 64, 'keep', ['output_cut']],
      ['output_continued', 64, 'keep', ['output_cut']],
      ['output_continued', 64, 'keep', ['output_cut']],
    ]);
    expect(endOf(state)).toMatchObject({
      reason: 'MAX_TOKENS',
      detail: 'output_limit',
      signal: { name: 'limit', limit: 'output_tokens', allowed: 64, used: 64 },
    });
  });

  // Trap: a model whose thinking fills the usual cap says nothing with the raised one; then each gives the other its budget back.
  test.each([
    ['by cut and empty', [cut(), reply({ empty: true })]],
    ['by empty and announced calls', [reply({ empty: true }), reply({ finish: 'tool_calls' })]],
  ])('two troubles in turns do not go on for ever: %s', (_name, replies) => {
    let state = turn({ inbox: [] });
    let samples = 0;
    for (; state.phase.kind === 'ready' && samples < 50; samples += 1) {
      state = after(state, replies[samples % replies.length] ?? cut());
    }
    expect(state.phase.kind).toBe('ending');
    expect(samples).toBeLessThanOrEqual(10);
  });

  test.each<[name: string, outcome: SampleOutcome, output: TurnState['output']]>([
    ['a sample that ends normally', reply({ calls: [ref(0)] }), { cap: 'usual', continued: 0 }],
    ['a cut call does not count as one', cut({ calls: [ref(0)] }), { cap: 'raised', continued: 2 }],
    ['nor does an empty reply', reply({ empty: true }), { cap: 'raised', continued: 2 }],
  ])('the salvage is given back: %s', (_name, outcome, output) => {
    expect(after(turn({ output: { cap: 'raised', continued: 2 } }), outcome).output).toEqual(output);
  });

  test('nothing is compacted in the middle of it', () => {
    expect(mayCompact(turn({ output: { cap: 'raised', continued: 0 } }))).toBe(true);
    expect(mayCompact(turn({ output: { cap: 'raised', continued: 1 } }))).toBe(false);
  });

  test('a failure in between takes nothing of it', () => {
    const state = turn({ output: { cap: 'raised', continued: 2 } });
    expect(afterFailure(state, stalled, 0.5).output).toEqual(state.output);
  });

  test('a raised cap that is refused is not asked for again in this turn', () => {
    const refused: ProviderFailure = { kind: 'invalid_request', status: 400 };
    const raised = turn({ output: { cap: 'raised', continued: 0 }, transition: 'retry_after_failure' });
    const usual = afterFailure(raised, refused, 0.5);
    expect(changed(raised, usual)).toEqual({
      output: { cap: 'refused', continued: 0 },
      resample: 1,
      transition: 'output_cap_refused',
    });
    expect(after(usual, reply({ calls: [ref(0)] })).output.cap).toBe('refused');
    expect(after(usual, cut())).toMatchObject({ transition: 'output_continued' });
    // Once it was taken, a refusal means something else.
    expect(endOf(afterFailure(turn({ output: { cap: 'raised', continued: 1 } }), refused, 0.5))).toMatchObject({
      detail: 'invalid_request',
    });
  });
});

describe('a reply that says nothing', () => {
  const empty = reply({ empty: true });

  test('to an input: two resamples, then ERROR/model', () => {
    const states = [1, 2, 3].reduce<TurnState[]>((all) => [...all, after(all.at(-1)!, empty)], [turn()]);
    expect(states.map(({ transition }) => transition)).toEqual([
      'opened',
      'resampled_empty',
      'resampled_empty',
      'resampled_empty',
    ]);
    expect(endOf(states[3]!)).toMatchObject({ reason: 'ERROR', detail: 'model' });
  });

  test('to tool results: two resamples, one nudge, then COMPLETED', () => {
    const states = [1, 2, 3, 4].reduce<TurnState[]>(
      (all) => [...all, after(all.at(-1)!, empty)],
      [turn({ inbox: [], follows: 'results' })],
    );
    expect(states.map(({ transition, reminders }) => [transition, reminders])).toEqual([
      ['opened', []],
      ['resampled_empty', []],
      ['resampled_empty', []],
      ['nudged_empty', ['empty_reply']],
      ['nudged_empty', []],
    ]);
    expect(endOf(states[4]!)).toEqual({
      reason: 'COMPLETED',
      detail: 'final_answer',
      decidedBy: 'model',
      signal: { name: 'retries_spent', cause: 'empty_reply', used: 2 },
      phase: 'ending',
    });
  });

  const silent = (change: Parameters<typeof turn>[0]) =>
    turn({ inbox: [], follows: 'results', tries: { empty: 2, emptyNudges: 1 }, ...change });

  // Trap: an end that looks harmless would be a way around everybody who may object to one.
  test.each<[name: string, state: TurnState, said: Partial<SampleOutcome & { kind: 'reply' }>, change: object]>([
    [
      'a required tool has not succeeded',
      silent({ rules: { contract: { tools: ['push'], maxRetries: 1, baseMs: 7, maxMs: 7 } } }),
      {},
      { phase: { kind: 'resting', untilMs: T0 + 7, cause: 'contract' }, contract: { reruns: 1 } },
    ],
    ['todos are open', silent({ rules: { todoGate: 'on' } }), { openTodos: 1 }, { transition: 'todo_nudge' }],
    ['hooks want to be asked', silent({}), { stopGate: true }, { phase: { kind: 'stop_gate' }, stopGate: { asks: 1 } }],
    ['there is a token target', silent({ rules: { tokenTarget: 9_000 } }), {}, { transition: 'token_target' }],
    [
      'an answer has to fit a schema',
      silent({ rules: { schema: 'asked' } }),
      { structured: { verdict: 'invalid', results: 0 } },
      { transition: 'structured_retry', reminders: ['structured_output'], answer: { retries: 1 } },
    ],
  ])('the end on it is looked at as any other: %s', (_name, state, said, change) => {
    const next = after(state, reply({ empty: true, ...said }));
    // Silence is no success: it gives no resample and no nudge back.
    expect(next).toMatchObject({ ...change, tries: { empty: 2, emptyNudges: 1 } });
  });

  test('the stop gate passes it: the end still says that nothing was said', () => {
    const asked = after(silent({}), reply({ empty: true, stopGate: true }));
    expect(endOf(apply(asked, { kind: 'stop_gate_answered', verdict: { kind: 'pass' }, atMs: T0 }))).toMatchObject({
      detail: 'final_answer',
      signal: { name: 'retries_spent', cause: 'empty_reply' },
    });
  });

  test('the result of a call that handed an answer in is a result, too', () => {
    const handed = after(
      turn({ inbox: [], rules: { schema: 'asked' } }),
      reply({ structured: { verdict: 'invalid', results: 1 } }),
    );
    expect(after(handed, empty).follows).toBe('results');
  });

  test('somebody who wrote meanwhile is answered first', () => {
    const state = turn({ inbox: ['in_2'], follows: 'results', tries: { empty: 2, emptyNudges: 1 } });
    expect(after(state, empty)).toMatchObject({ phase: { kind: 'ready' }, transition: 'input_arrived' });
  });

  test('one that is filtered is not asked for again', () => {
    expect(endOf(after(turn(), reply({ empty: true, finish: 'content_filter' })))).toMatchObject({ detail: 'refused' });
  });

  test('what is drained is what has to be answered: an input with the results counts', () => {
    expect(apply(turn({ follows: 'results' }), sampled(empty, 1)).follows).toBe('input');
  });
});

test('calls that were announced and never came: told once, then the text is the answer', () => {
  const promised = reply({ finish: 'tool_calls' });
  const told = after(turn({ inbox: [] }), promised);
  expect(told).toMatchObject({ phase: { kind: 'ready' }, reminders: ['calls_missing'], transition: 'calls_missing' });
  expect(endOf(after(told, promised))).toMatchObject({ reason: 'COMPLETED', detail: 'final_answer' });
});
