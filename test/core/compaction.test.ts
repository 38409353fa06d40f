import { describe, expect, test } from 'vitest';
import { apply } from '../../workflows/core/apply.ts';
import type { CompactOutcome } from '../../workflows/core/compact-outcome.ts';
import { mayCompact, roomTokens } from '../../workflows/core/compaction.ts';
import { nextStep } from '../../workflows/core/next-step.ts';
import type { SampleOutcome } from '../../workflows/core/sample-outcome.ts';
import type { TurnEvent } from '../../workflows/core/turn-event.ts';
import { type ContextTries, FRESH_CONTEXT } from '../../workflows/core/turn-counters.ts';
import { type TurnState } from '../../workflows/core/turn-state.ts';
import { CANCELLED, changed, endOf, ref, reply, T0, turn, USAGE } from './fixtures.ts';

const sampled = (outcome: SampleOutcome): TurnEvent => ({ kind: 'sampled', outcome, drained: 1, dice: 0.5, atMs: T0 });
const compacted = (outcome: CompactOutcome): TurnEvent => ({ kind: 'compacted', outcome, dice: 0.5, atMs: T0 });
const overflow = (windowTokens?: number): SampleOutcome => ({
  kind: 'overflow',
  head: 'h0',
  usage: USAGE,
  ...(windowTokens === undefined ? {} : { windowTokens }),
});
const contextLimit = (signal: object, phase = 'sampling') => ({
  reason: 'MAX_TOKENS',
  detail: 'context_limit',
  decidedBy: 'runtime',
  signal,
  phase,
});
const drained = { inbox: [] };

describe('a sample that does not fit', () => {
  test('needs a compaction: what its commit took in is on the chain, and the next step compacts', () => {
    const before = turn({ unappendedResults: 2, reminders: ['todo'] });
    const after = apply(before, sampled({ kind: 'needs_compaction', head: 'h1', estimateTokens: 9 }));
    expect(changed(before, after)).toEqual({
      ...drained,
      head: 'h1',
      unappendedResults: 0,
      reminders: [],
      phase: { kind: 'compacting', cause: 'window' },
    });
    expect(nextStep(after, T0)).toEqual({ kind: 'compact', cause: 'window' });
  });

  test('no room, and compaction is off: the end that has its name', () => {
    const before = turn({ limits: { contextTokens: 900 } });
    expect(endOf(apply(before, sampled({ kind: 'no_room', head: 'h0', estimateTokens: 899 })))).toEqual(
      contextLimit({ name: 'limit', limit: 'context_tokens', allowed: 900, used: 899 }),
    );
  });

  test('no room where a compaction was tried in vain: the end; once the context has changed: tried again', () => {
    const noRoom = (head: string) => sampled({ kind: 'no_room', head, estimateTokens: 9 });
    expect(endOf(apply(turn({ context: { brokenAt: 'h0' } }), noRoom('h0')))).toMatchObject({
      detail: 'context_limit',
    });
    expect(apply(turn({ context: { brokenAt: 'h0' } }), noRoom('h1')).phase).toEqual({
      kind: 'compacting',
      cause: 'window',
    });
  });

  test('the provider says so: compacted, once; with its window, where it names a smaller one', () => {
    const before = turn();
    expect(changed(before, apply(before, sampled(overflow())))).toEqual({
      ...drained,
      usage: USAGE,
      phase: { kind: 'compacting', cause: 'overflow' },
      context: { ...FRESH_CONTEXT, overflow: 'taken' },
    });
    expect(apply(before, sampled(overflow(8_192))).limits.contextTokens).toBe(8_192);
    expect(apply(before, sampled(overflow(999_999))).limits.contextTokens).toBe(before.limits.contextTokens);
  });

  // Trap: nudges, gates and reruns would each bring a fresh overflow compaction, for ever.
  test.each<[name: string, events: readonly TurnEvent[], again: boolean]>([
    ['at once', [], false],
    ['after an empty reply', [sampled(reply({ empty: true }))], false],
    [
      'after a transport failure',
      [sampled({ kind: 'stalled', head: 'h0', usage: USAGE }), { kind: 'rested', atMs: T0 }],
      false,
    ],
    ['after more messages', [{ kind: 'inputs_arrived', inputs: ['x'], atMs: T0 }], false],
    [
      'after a compaction of our own',
      [sampled({ kind: 'needs_compaction', head: 'h0', estimateTokens: 9 }), compacted(short('h2'))],
      false,
    ],
    [
      'after a sample that succeeded',
      [
        sampled(reply({ finish: 'tool_calls', calls: [ref(0)] })),
        { kind: 'call_finished', ordinal: 0, status: 'ok', atMs: T0 },
        { kind: 'batch_returned', atMs: T0 },
      ],
      true,
    ],
  ])('a second overflow %s', (_name, events, again) => {
    const once = [sampled(overflow()), compacted(short('h9'))].reduce(apply, turn());
    expect(once).toMatchObject({ phase: { kind: 'ready' }, transition: 'overflow_compacted', head: 'h9', resample: 1 });
    const after = apply(events.reduce(apply, once), sampled(overflow()));
    if (again) expect(after.phase).toEqual({ kind: 'compacting', cause: 'overflow' });
    else expect(endOf(after)).toEqual(contextLimit({ name: 'provider_answer', cause: 'overflow' }));
  });
});

/** A compaction that helped. */
function short(head: string): CompactOutcome {
  return { kind: 'compacted', head, beforeTokens: 110_000, afterTokens: 40_000, usage: USAGE };
}

describe('a compaction', () => {
  const compacting = (context: Partial<ContextTries> = {}, change: Partial<TurnState> = {}) =>
    turn({ ...change, phase: { kind: 'compacting', cause: 'window' }, context });

  test('the summary is the head, and the sample that follows has another key', () => {
    const before = compacting(
      { failed: 2, shrinks: 1, ineffective: 2, brokenAt: 'h0' },
      { inbox: ['late'], resample: 3 },
    );
    expect(changed(before, apply(before, compacted(short('s1'))))).toEqual({
      head: 's1',
      usage: USAGE,
      phase: { kind: 'ready' },
      resample: 4,
      context: FRESH_CONTEXT,
      transition: 'compacted',
    });
  });

  test.each<[name: string, beforeTokens: number, afterTokens: number]>([
    ['leaves too much', 126_000, 109_000],
    ['frees too little', 110_000, 108_000],
    ['makes it longer', 110_000, 120_000],
  ])('three in a row that help nothing end the turn (%s)', (_name, beforeTokens, afterTokens) => {
    const poor: CompactOutcome = { kind: 'compacted', head: 's1', beforeTokens, afterTokens, usage: USAGE };
    expect(apply(compacting(), compacted(poor))).toMatchObject({
      phase: { kind: 'ready' },
      transition: 'compacted',
      context: { ineffective: 1 },
    });
    expect(endOf(apply(compacting({ ineffective: 2 }), compacted(poor)))).toEqual(
      contextLimit({ name: 'limit', limit: 'context_tokens', allowed: 128_000, used: afterTokens }, 'compacting'),
    );
  });

  test.each<[name: string, failure: CompactOutcome, failed: number, forMs: number]>([
    ['transport', { kind: 'transport', cause: 'reset', usage: USAGE }, 0, 2_000],
    ['stalled, second', { kind: 'stalled', usage: USAGE }, 1, 4_000],
    ['overloaded, third', { kind: 'overloaded', status: 529, afterMs: 50_000, usage: USAGE }, 2, 50_000],
    [
      'overloaded for days: a day at most',
      { kind: 'overloaded', status: 503, afterMs: 9e8, usage: USAGE },
      0,
      86_400_000,
    ],
    ['429', { kind: 'rate_limited', afterMs: 7_000, quota: false, usage: USAGE }, 0, 7_000],
    ['auth, second', { kind: 'auth', status: 401, usage: USAGE }, 1, 2_000],
    ['no summary', { kind: 'empty', usage: USAGE }, 0, 2_000],
  ])('a passing failure rests on a durable timer (%s)', (_name, failure, failed, forMs) => {
    const before = compacting({ failed });
    const after = apply(before, compacted(failure));
    expect(changed(before, after)).toEqual({
      usage: USAGE,
      phase: { kind: 'compaction_resting', untilMs: T0 + forMs, cause: 'window' },
      context: { ...FRESH_CONTEXT, failed: failed + 1 },
      // What the model made of it is asked for anew, under another key.
      ...(failure.kind === 'empty' ? { resample: 1 } : {}),
    });
    expect(nextStep(after, T0)).toEqual({ kind: 'rest', forMs });
    expect(apply(after, { kind: 'rested', atMs: T0 }).phase).toEqual({ kind: 'compacting', cause: 'window' });
  });

  test.each<[name: string, failure: CompactOutcome, context: Partial<ContextTries>]>([
    ['a fourth passing failure', { kind: 'stalled', usage: USAGE }, { failed: 3 }],
    ['an invalid request', { kind: 'invalid_request', status: 400, usage: USAGE }, {}],
    ['a final server error', { kind: 'server_error', status: 500, final: true, usage: USAGE }, {}],
    ['too large', { kind: 'too_large', usage: USAGE }, {}],
    ['nothing to summarize', { kind: 'nothing' }, {}],
    ['even an eighth of the text is too long', { kind: 'overflow', usage: USAGE }, { shrinks: 3 }],
  ])('in vain (%s): what still fits is sampled, and this context is not tried again', (_name, failure, context) => {
    const after = apply(compacting(context), compacted(failure));
    expect(after).toMatchObject({
      phase: { kind: 'ready' },
      transition: 'not_compacted',
      resample: 0,
      context: { ...FRESH_CONTEXT, brokenAt: 'h0', ineffective: 1 },
    });
    expect([mayCompact(after), mayCompact({ ...after, head: 'h1' })]).toEqual([false, true]);
    // What the provider has refused as too long is not sent again as it was.
    const refused = turn({
      phase: { kind: 'compacting', cause: 'overflow' },
      context: { ...context, overflow: 'taken' },
    });
    const used = Math.max(context.failed ?? 0, context.shrinks ?? 0) + 1;
    expect(endOf(apply(refused, compacted(failure)))).toEqual(
      contextLimit({ name: 'retries_spent', cause: `compaction_${failure.kind}`, used }, 'compacting'),
    );
    expect(endOf(apply(compacting({ ...context, ineffective: 2 }), compacted(failure)))).toMatchObject({
      detail: 'context_limit',
      phase: 'compacting',
    });
  });

  test('a summary request that is too long goes again with half of the text, at once', () => {
    const before = compacting({ shrinks: 1 });
    const after = apply(before, compacted({ kind: 'overflow', windowTokens: 9_000, usage: USAGE }));
    expect(after).toMatchObject({ phase: before.phase, context: { shrinks: 2 }, limits: { contextTokens: 9_000 } });
  });

  test('off: the sample goes on while there is room, an overflow ends', () => {
    expect(apply(compacting(), compacted({ kind: 'off' })).context).toMatchObject({ ineffective: 0, brokenAt: 'h0' });
    const refused = turn({ phase: { kind: 'compacting', cause: 'overflow' } });
    expect(endOf(apply(refused, compacted({ kind: 'off' })))).toMatchObject({ detail: 'context_limit' });
  });

  test('a cancel cuts it: the end names the phase, and steering waits for the sample that follows', () => {
    const steered = apply(compacting(), { kind: 'inputs_arrived', inputs: ['s'], atMs: T0 });
    expect(steered).toMatchObject({ phase: { kind: 'compacting' }, inbox: ['in_1', 's'] });
    expect(nextStep(apply(steered, compacted(short('s1'))), T0)).toMatchObject({
      kind: 'sample',
      inputs: ['in_1', 's'],
    });
    const asked = apply(steered, { kind: 'cancel_requested', atMs: T0 });
    expect(nextStep(apply(asked, compacted({ kind: 'cut' })), T0)).toEqual({
      kind: 'finish',
      end: { ...CANCELLED, phase: 'compacting' },
    });
  });

  test('too many attempts lost is a fault', () => {
    expect(endOf(apply(compacting(), compacted({ kind: 'attempts_lost', attempts: 10 })))).toMatchObject({
      detail: 'internal',
      phase: 'compacting',
    });
  });

  test('its rest is no running time, its work is', () => {
    const resting = turn({ phase: { kind: 'compaction_resting', untilMs: T0 + 9, cause: 'window' } });
    expect(apply(resting, { kind: 'rested', atMs: T0 + 9 }).runningMs).toBe(0);
    expect(apply(compacting(), { ...compacted(short('s1')), atMs: T0 + 9 }).runningMs).toBe(9);
  });
});

describe('too large', () => {
  const tooLarge = sampled({ kind: 'too_large', head: 'h0', usage: USAGE });

  const end = (phase: 'sampling' | 'compacting') => ({
    reason: 'ERROR',
    detail: 'invalid_request',
    decidedBy: 'runtime',
    signal: { name: 'provider_answer', cause: 'too_large', status: 413 },
    phase,
  });

  test('once more without the images, and the transcript says so; once more shorter; then the end', () => {
    const before = turn();
    const once = apply(before, tooLarge);
    expect(changed(before, once)).toEqual({
      ...drained,
      usage: USAGE,
      resample: 1,
      reminders: ['images_stripped'],
      context: { ...FRESH_CONTEXT, images: 'stripped' },
      transition: 'images_stripped',
    });
    const twice = apply(once, tooLarge);
    expect(twice).toMatchObject({
      phase: { kind: 'compacting', cause: 'too_large' },
      context: { images: 'stripped', overflow: 'taken' },
    });
    const shorter = apply(twice, compacted(short('s1')));
    expect(shorter).toMatchObject({ phase: { kind: 'ready' }, transition: 'overflow_compacted' });
    expect(endOf(apply(shorter, tooLarge))).toEqual(end('sampling'));
    // An empty reply is no success.
    expect(endOf(apply(apply(shorter, sampled(reply({ empty: true }))), tooLarge))).toEqual(end('sampling'));
  });

  test.each(['off', 'nothing', 'too_large'] as const)('what can’t be made shorter (%s) ends at once', (kind) => {
    const twice = apply(apply(turn(), tooLarge), tooLarge);
    const outcome = kind === 'too_large' ? { kind, usage: USAGE } : { kind };
    expect(endOf(apply(twice, compacted(outcome)))).toEqual(end('compacting'));
  });

  test('nor is it made shorter where an overflow has done so already', () => {
    const overflow = apply(turn(), sampled({ kind: 'overflow', head: 'h0', usage: USAGE }));
    const shorter = apply(overflow, compacted(short('s1')));
    expect(endOf(apply(apply(shorter, tooLarge), tooLarge))).toEqual(end('sampling'));
  });
});

test.each([
  [128_000, 108_800],
  [20_000, 17_000],
  // 85 % would leave less than 3,000.
  [8_192, 5_192],
])('a window of %i has room up to %i', (window, tokens) => {
  expect(roomTokens(window)).toBe(tokens);
});
