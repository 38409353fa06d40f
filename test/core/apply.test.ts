import { describe, expect, test } from 'vitest';
import { addUsage, apply } from '../../workflows/core/apply.ts';
import type { End } from '../../workflows/core/ends.ts';
import { NO_USAGE, type SampleOutcome } from '../../workflows/core/sample-outcome.ts';
import type { TurnEvent } from '../../workflows/core/turn-event.ts';
import type { TurnState } from '../../workflows/core/turn-state.ts';
import { batch, CANCELLED, changed, COMPLETED, endOf, reply, T0, turn, USAGE } from './fixtures.ts';

const sampled = (outcome: SampleOutcome): TurnEvent => ({ kind: 'sampled', outcome, drained: 1, dice: 0.5, atMs: T0 });

describe('calls', () => {
  const running = turn({ phase: batch('running', 'queued', 'ok') });
  const states = (state: TurnState) =>
    state.phase.kind === 'batch' ? state.phase.calls.map((call) => call.state) : null;

  test.each<[name: string, event: TurnEvent, after: string[]]>([
    ['one begins', { kind: 'call_started', ordinal: 1, atMs: T0 }, ['running', 'running', 'ok']],
    ['one comes back', { kind: 'call_finished', ordinal: 0, status: 'error', atMs: T0 }, ['error', 'queued', 'ok']],
    [
      'one is cut before it began',
      { kind: 'call_finished', ordinal: 1, status: 'not_started', atMs: T0 },
      ['running', 'not_started', 'ok'],
    ],
    // Trap: a second word on a call would turn a kept result into another one.
    [
      'a second return changes nothing',
      { kind: 'call_finished', ordinal: 2, status: 'unknown', atMs: T0 },
      ['running', 'queued', 'ok'],
    ],
    [
      'a returned call does not begin again',
      { kind: 'call_started', ordinal: 2, atMs: T0 },
      ['running', 'queued', 'ok'],
    ],
    [
      'an ordinal that is not there changes nothing',
      { kind: 'call_finished', ordinal: 7, status: 'ok', atMs: T0 },
      ['running', 'queued', 'ok'],
    ],
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
    ['in a compaction', turn({ phase: { kind: 'compacting', cause: 'window' } }), 'compacting'],
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
    const ending = turn({ phase: { kind: 'ending', end: COMPLETED } });
    expect(changed(ending, apply(ending, event))).toEqual({});
  });

  test('a rest that is over goes on; out of a rest it means nothing', () => {
    const resting = turn({ phase: { kind: 'resting', untilMs: T0 + 9, cause: 'stalled' } });
    const rested: TurnEvent = { kind: 'rested', atMs: T0 };
    expect(changed(resting, apply(resting, rested))).toEqual({
      phase: { kind: 'ready' },
      transition: 'retry_after_failure',
    });
    expect(changed(turn(), apply(turn(), rested))).toEqual({});
  });
});

describe('the clock', () => {
  test.each<[name: string, state: TurnState, atMs: number, runningMs: number, lastMs: number]>([
    ['work counts', turn({ runningMs: 5 }), T0 + 100, 105, T0 + 100],
    ['a batch counts', turn({ phase: batch('running') }), T0 + 100, 100, T0 + 100],
    // Trap: a rest of hours would use up the running time of a turn that did nothing.
    [
      'a rest does not',
      turn({ phase: { kind: 'resting', untilMs: T0 + 100, cause: 'stalled' } }),
      T0 + 100,
      0,
      T0 + 100,
    ],
    ['it never runs backwards', turn({ runningMs: 5 }), T0 - 100, 5, T0],
  ])('%s', (_name, state, atMs, runningMs, lastMs) => {
    expect(apply(state, { kind: 'rested', atMs })).toMatchObject({ runningMs, atMs: lastMs });
  });
});

test('usage adds up, and is incomplete for good once a part of it was', () => {
  expect(addUsage(USAGE, USAGE)).toEqual({
    inputTokens: 200,
    cachedTokens: 80,
    outputTokens: 20,
    reasoningTokens: 6,
    complete: true,
  });
  expect(addUsage({ ...NO_USAGE, complete: false }, USAGE).complete).toBe(false);
  expect(addUsage(USAGE)).toEqual(USAGE);
});
