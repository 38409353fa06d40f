import { describe, expect, test } from 'vitest';
import { addUsage, apply } from '../../workflows/core/apply.ts';
import type { End } from '../../workflows/core/ends.ts';
import { NO_USAGE, type SampleOutcome } from '../../workflows/core/sample-outcome.ts';
import type { TurnEvent } from '../../workflows/core/turn-event.ts';
import { FRESH_TRIES, type TurnState } from '../../workflows/core/turn-state.ts';
import { batch, changed, ref, reply, T0, turn, USAGE } from './fixtures.ts';

const END: End = {
  reason: 'COMPLETED',
  detail: 'final_answer',
  decidedBy: 'model',
  signal: { name: 'model_stop' },
  phase: 'ending',
};
const CANCELLED: End = {
  reason: 'ABORTED',
  detail: 'user_cancel',
  decidedBy: 'user',
  signal: { name: 'cancel_request' },
  phase: 'sampling',
};
const sampled = (outcome: SampleOutcome, drained = 1): TurnEvent => ({ kind: 'sampled', outcome, drained, dice: 0.5, atMs: T0 });
const endOf = (state: TurnState) => (state.phase.kind === 'ending' ? state.phase.end : null);

describe('a sample', () => {
  // What its first commit took in is on the chain: the same results, inputs and reminders may not go there again.
  const taken = { head: 'h1', inbox: [], unappendedResults: 0, reminders: [], usage: USAGE };
  const before = turn({ unappendedResults: 2, reminders: ['todo'], transition: 'tool_results', step: 3 });

  test.each<[name: string, state: TurnState, outcome: SampleOutcome, change: Partial<TurnState>]>([
    ['a final answer ends the turn', before, reply(), { ...taken, phase: { kind: 'ending', end: END } }],
    [
      'calls open a batch; a call that is answered already is not run',
      before,
      reply({ finish: 'tool_calls', calls: [ref(0), ref(1, { verdict: 'answered' })] }),
      {
        ...taken,
        phase: {
          kind: 'batch',
          calls: [
            { ref: ref(0), state: 'queued' },
            { ref: ref(1, { verdict: 'answered' }), state: 'error' },
          ],
        },
      },
    ],
    [
      // Trap: the finish reason is the provider's word; only whether calls exist decides.
      'calls count though the stream says stop, or was filtered',
      before,
      reply({ finish: 'content_filter', calls: [ref(0)] }),
      { ...taken, phase: { kind: 'batch', calls: [{ ref: ref(0), state: 'queued' }] } },
    ],
    [
      'an empty reply is asked for again, with other bytes',
      before,
      reply({ empty: true }),
      { ...taken, resample: 1, tries: { ...FRESH_TRIES, empty: 1 }, transition: 'resampled_empty' },
    ],
    [
      'a success gives the retry budgets back, an empty reply keeps its own',
      turn({ inbox: [], tries: { transport: 9, auth: 2, rateLimit: 1, parkedMs: 5, empty: 1, cutCalls: 3 } }),
      reply({ empty: true }),
      { head: 'h1', usage: USAGE, resample: 1, tries: { ...FRESH_TRIES, empty: 2, cutCalls: 3 }, transition: 'resampled_empty' },
    ],
    [
      'a message that came meanwhile goes on in the same turn',
      turn({ inbox: ['in_1', 'in_2', 'in_3'], tries: { empty: 2 } }),
      reply(),
      { head: 'h1', inbox: ['in_2', 'in_3'], usage: USAGE, tries: FRESH_TRIES, transition: 'input_arrived' },
    ],
    ['a cut stream that appended nothing leaves the inbox', before, { kind: 'cut', head: 'h0' }, { transition: 'continued' }],
    [
      'a cut stream whose appends were committed does not append them again',
      before,
      { kind: 'cut', head: 'h9' },
      { ...taken, head: 'h9', usage: before.usage, transition: 'continued' },
    ],
  ])('%s', (_name, state, outcome, change) => {
    expect(changed(state, apply(state, sampled(outcome)))).toEqual(dropSame(state, change));
  });

  test.each<[name: string, state: TurnState, outcome: SampleOutcome, end: Partial<End>]>([
    ['filtered', turn(), reply({ finish: 'content_filter' }), { detail: 'refused', decidedBy: 'model' }],
    [
      // A refusal is final even with something waiting: the waiting message starts the next turn.
      'filtered, with a message waiting',
      turn({ inbox: ['in_1', 'in_2'] }),
      reply({ finish: 'content_filter' }),
      { detail: 'refused' },
    ],
    ['empty a third time', turn({ tries: { empty: 2 } }), reply({ empty: true }), {
      reason: 'ERROR',
      detail: 'model',
      signal: { name: 'retries_spent', cause: 'empty_reply', used: 2 },
    }],
    ['cut by its length', turn({ limits: { outputTokens: 64 } }), reply({ finish: 'length' }), {
      reason: 'MAX_TOKENS',
      detail: 'output_limit',
      signal: { name: 'limit', limit: 'output_tokens', allowed: 64, used: 64 },
    }],
    ['no room', turn({ limits: { contextTokens: 900 } }), { kind: 'no_room', head: 'h0', estimateTokens: 899 }, {
      reason: 'MAX_TOKENS',
      detail: 'context_limit',
      signal: { name: 'limit', limit: 'context_tokens', allowed: 900, used: 899 },
    }],
    ['needs compaction', turn({ limits: { contextTokens: 900 } }), { kind: 'needs_compaction', head: 'h0', estimateTokens: 800 }, {
      reason: 'MAX_TOKENS',
      detail: 'context_limit',
      signal: { name: 'limit', limit: 'context_tokens', allowed: 900, used: 800 },
    }],
    ['too many attempts lost', turn(), { kind: 'attempts_lost', head: 'h0', attempts: 10 }, {
      reason: 'ERROR',
      detail: 'internal',
      signal: { name: 'retries_spent', cause: 'attempts_lost', used: 10 },
    }],
    ['a sixth cut call in a row', turn({ tries: { cutCalls: 5 } }), reply({ finish: 'length', calls: [ref(0)] }), {
      reason: 'ERROR',
      detail: 'model',
      signal: { name: 'retries_spent', cause: 'cut_calls', used: 6 },
    }],
  ])('%s: the end that has its name', (_name, state, outcome, end) => {
    expect(endOf(apply(state, sampled(outcome)))).toMatchObject(end);
  });

  test('five steps with cut calls in a row go on; one whole step starts the count again', () => {
    const cut = reply({ finish: 'length', calls: [ref(0)] });
    expect(apply(turn({ tries: { cutCalls: 4 } }), sampled(cut))).toMatchObject({ phase: { kind: 'batch' }, tries: { cutCalls: 5 } });
    expect(apply(turn({ tries: { cutCalls: 5 } }), sampled(reply({ calls: [ref(0)] })))).toMatchObject({ tries: { cutCalls: 0 } });
  });
});

describe('calls', () => {
  const running = turn({ phase: batch('running', 'queued', 'ok') });
  const states = (state: TurnState) => (state.phase.kind === 'batch' ? state.phase.calls.map((call) => call.state) : null);

  test.each<[name: string, event: TurnEvent, after: string[]]>([
    ['one begins', { kind: 'call_started', ordinal: 1, atMs: T0 }, ['running', 'running', 'ok']],
    ['one comes back', { kind: 'call_finished', ordinal: 0, status: 'error', atMs: T0 }, ['error', 'queued', 'ok']],
    ['one is cut before it began', { kind: 'call_finished', ordinal: 1, status: 'not_started', atMs: T0 }, ['running', 'not_started', 'ok']],
    // Trap: a second word on a call would turn a kept result into another one.
    ['a second return changes nothing', { kind: 'call_finished', ordinal: 2, status: 'unknown', atMs: T0 }, ['running', 'queued', 'ok']],
    ['a returned call does not begin again', { kind: 'call_started', ordinal: 2, atMs: T0 }, ['running', 'queued', 'ok']],
    ['an ordinal that is not there changes nothing', { kind: 'call_finished', ordinal: 7, status: 'ok', atMs: T0 }, ['running', 'queued', 'ok']],
  ])('%s', (_name, event, after) => {
    expect(states(apply(running, event))).toEqual(after);
  });

  test('a whole batch is one step, and its results go to the next sample', () => {
    const before = turn({ phase: batch('ok', 'error'), step: 4, resample: 2 });
    expect(changed(before, apply(before, { kind: 'batch_returned', atMs: T0 }))).toEqual({
      phase: { kind: 'ready' },
      step: 5,
      resample: 0,
      unappendedResults: 2,
      transition: 'tool_results',
    });
  });

  test('a batch that was cut stays open, and its results are still owed', () => {
    const before = turn({ phase: batch('ok', 'queued') });
    expect(changed(before, apply(before, { kind: 'batch_returned', atMs: T0 }))).toEqual({ unappendedResults: 2 });
  });

  test('an unknown outcome whose tool says so interrupts the turn', () => {
    const before = turn({ phase: batch('ok', 'unknown_ends_turn') });
    expect(endOf(apply(before, { kind: 'batch_returned', atMs: T0 }))).toEqual({
      reason: 'INTERRUPTED',
      detail: 'unknown_outcome',
      decidedBy: 'runtime',
      signal: { name: 'fault', type: 'turn.unknown_outcome' },
      phase: 'tools',
    });
  });
});

describe('what comes from outside', () => {
  test('inputs queue up in order, each once', () => {
    const before = turn({ inbox: ['in_1', 'in_2'] });
    const after = apply(before, { kind: 'inputs_arrived', inputs: ['in_3', 'in_2', 'in_4'], atMs: T0 });
    expect(changed(before, after)).toEqual({ inbox: ['in_1', 'in_2', 'in_3', 'in_4'] });
  });

  test.each<[where: string, state: TurnState, phase: End['phase']]>([
    ['before a sample', turn(), 'sampling'],
    ['in a batch', turn({ phase: batch('running') }), 'tools'],
    ['in a rest', turn({ phase: { kind: 'resting', untilMs: T0 + 9, cause: 'stalled' } }), 'resting'],
    ['in a compaction', turn({ phase: { kind: 'compacting' } }), 'compacting'],
  ])('a cancel %s asks for the end that names the phase', (_where, state, phase) => {
    const after = apply(state, { kind: 'cancel_requested', atMs: T0 });
    expect(changed(state, after)).toEqual({ asked: { ...CANCELLED, phase } });
  });

  test('of two cancels the first stands', () => {
    const first = apply(turn(), { kind: 'cancel_requested', atMs: T0 });
    const later = apply({ ...first, phase: batch('queued') }, { kind: 'cancel_requested', atMs: T0 });
    expect(later.asked).toEqual({ ...CANCELLED, phase: 'sampling' });
  });

  test.each(['store', 'tool', 'code'] as const)('a fault of %s is an ERROR with its dotted type', (source) => {
    const detail = { store: 'storage', tool: 'tool_infrastructure', code: 'internal' }[source];
    expect(endOf(apply(turn(), { kind: 'failed', type: 'x.y', source, atMs: T0 }))).toEqual({
      reason: 'ERROR',
      detail,
      decidedBy: 'runtime',
      signal: { name: 'fault', type: 'x.y' },
      phase: 'sampling',
    });
  });

  test.each<[name: string, event: TurnEvent]>([
    ['a cancel', { kind: 'cancel_requested', atMs: T0 }],
    ['a fault', { kind: 'failed', type: 'x.y', source: 'store', atMs: T0 }],
    ['a sample', sampled(reply({ finish: 'length' }))],
    ['a batch', { kind: 'batch_returned', atMs: T0 }],
    ['a rest', { kind: 'rested', atMs: T0 }],
  ])('%s does not touch an end that is decided', (_name, event) => {
    const ending = turn({ phase: { kind: 'ending', end: END } });
    expect(changed(ending, apply(ending, event))).toEqual({});
  });

  test('a rest that is over goes on; out of a rest it means nothing', () => {
    const resting = turn({ phase: { kind: 'resting', untilMs: T0 + 9, cause: 'stalled' } });
    const rested: TurnEvent = { kind: 'rested', atMs: T0 };
    expect(changed(resting, apply(resting, rested))).toEqual({ phase: { kind: 'ready' }, transition: 'retry_after_failure' });
    expect(changed(turn(), apply(turn(), rested))).toEqual({});
  });
});

describe('the clock', () => {
  test.each<[name: string, state: TurnState, atMs: number, runningMs: number, lastMs: number]>([
    ['work counts', turn({ runningMs: 5 }), T0 + 100, 105, T0 + 100],
    ['a batch counts', turn({ phase: batch('running') }), T0 + 100, 100, T0 + 100],
    // Trap: a rest of hours would use up the running time of a turn that did nothing.
    ['a rest does not', turn({ phase: { kind: 'resting', untilMs: T0 + 100, cause: 'stalled' } }), T0 + 100, 0, T0 + 100],
    ['it never runs backwards', turn({ runningMs: 5 }), T0 - 100, 5, T0],
  ])('%s', (_name, state, atMs, runningMs, lastMs) => {
    expect(apply(state, { kind: 'rested', atMs })).toMatchObject({ runningMs, atMs: lastMs });
  });
});

test('usage adds up, and is incomplete for good once a part of it was', () => {
  expect(addUsage(USAGE, USAGE)).toEqual({ inputTokens: 200, cachedTokens: 80, outputTokens: 20, reasoningTokens: 6, complete: true });
  expect(addUsage({ ...NO_USAGE, complete: false }, USAGE).complete).toBe(false);
  expect(addUsage(USAGE)).toEqual(USAGE);
});

function dropSame(before: TurnState, change: Partial<TurnState>): Partial<TurnState> {
  return changed(before, { ...before, ...change });
}
