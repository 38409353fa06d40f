import { describe, expect, test } from 'vitest';
import { apply } from '../../workflows/core/apply.ts';
import type { End } from '../../workflows/core/ends.ts';
import type { SampleOutcome } from '../../workflows/core/sample-outcome.ts';
import type { TurnEvent } from '../../workflows/core/turn-event.ts';
import { nextStep } from '../../workflows/core/next-step.ts';
import type { BatchCall, Phase, TurnState } from '../../workflows/core/turn-state.ts';
import { batch, CANCEL, CANCELLED, changed, COMPLETED, endOf, ref, reply, T0, turn } from './fixtures.ts';

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
      follows: 'results',
      repeats: { batch: expect.any(String) as string, tier: 'readers', times: 1 },
      transition: 'tool_results',
    });
  });

  test('a batch that was cut stays open, and its results are still owed', () => {
    const before = turn({ phase: batch('ok', 'queued') });
    expect(changed(before, apply(before, { kind: 'batch_returned', atMs: T0 }))).toEqual({ unappendedResults: 2 });
  });

  test('a batch that a cancel cut stays as it is, so that it can be taken back', () => {
    const before = turn({ phase: batch('unknown', 'unknown_ends_turn'), asked: CANCEL });
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

const inDoubt: Phase & { kind: 'batch' } = {
  kind: 'batch',
  calls: [{ ref: ref(0, { effect: 'once' }), state: 'in_doubt', approval: 'out_1', untilMs: T0 + 9_000 }],
  fuse: null,
};

describe('an outcome that nobody knows', () => {
  const callIn = (state: TurnState) => (state.phase.kind === 'batch' ? state.phase.calls[0] : null);
  const asked: TurnEvent = { kind: 'outcome_asked', ordinal: 0, approval: 'out_1', untilMs: T0 + 9_000, atMs: T0 };
  const answered: TurnEvent = { kind: 'answer_arrived', approval: 'out_1', atMs: T0 };
  const heard: TurnEvent = { kind: 'outcome_heard', ordinal: 0, atMs: T0 };
  const doubt = { state: 'in_doubt', approval: 'out_1', untilMs: T0 + 9_000 };

  test.each<[name: string, from: Phase, event: TurnEvent, call: object]>([
    ['is asked about while the call runs', batch('running'), asked, doubt],
    ['is not asked about a call that is back', batch('ok'), asked, { state: 'ok' }],
    ['is not asked about a call that has not begun', batch('queued'), asked, { state: 'queued' }],
    ['has its answer: no more waiting', inDoubt, answered, { ...doubt, untilMs: 0 }],
    [
      'keeps waiting when another question is answered',
      inDoubt,
      { ...answered, approval: 'out_2' } as TurnEvent,
      doubt,
    ],
    ['goes back to the call with the answer', inDoubt, heard, { state: 'running' }],
    ['does not start a call that waits for nothing', batch('queued'), heard, { state: 'queued' }],
    [
      'is over with a status',
      inDoubt,
      { kind: 'call_finished', ordinal: 0, status: 'unknown', atMs: T0 },
      { state: 'unknown' },
    ],
    ['does not begin a second time', inDoubt, { kind: 'call_started', ordinal: 0, atMs: T0 }, doubt],
  ])('%s', (_name, phase, event, call) => {
    const { ref: _ref, ...rest } = callIn(apply(turn({ phase }), event)) ?? {};
    expect(rest).toEqual(call);
  });

  test('is asked about a call that the turn opened with as well, and can be taken back', () => {
    const carried = (call: BatchCall) => turn({ phase: { kind: 'carried', assistant: 'm0', call } });
    const running = carried({ ref: ref(0, { effect: 'once', undo: 'declared' }), state: 'running' });
    const before = apply(running, asked);
    expect(before.phase).toMatchObject({ kind: 'carried', call: doubt });
    expect(apply(before, answered).phase).toMatchObject({ call: { untilMs: 0 } });
    expect(apply(before, heard).phase).toMatchObject({ call: { state: 'running' } });
    expect(apply(before, { kind: 'rested', atMs: T0 + 100 }).runningMs).toBe(0);
    const cancelled = apply(before, { kind: 'cancel_requested', atMs: T0 });
    expect(cancelled.asked?.end.phase).toBe('waiting');
    const cut = apply(cancelled, { kind: 'call_finished', ordinal: 0, status: 'unknown', atMs: T0 });
    const back = apply(cut, { kind: 'batch_returned', atMs: T0 });
    expect(nextStep(back, T0)).toEqual({ kind: 'undo', ordinals: [0], forMs: 30_000 });
  });

  test('what a cancel cut was taken back: now its end is the end; without a cancel it means nothing', () => {
    const cut = turn({ phase: batch('unknown'), asked: CANCEL });
    expect(endOf(apply(cut, { kind: 'undo_over', atMs: T0 }))).toEqual(CANCELLED);
    const running = turn({ phase: batch('running') });
    expect(changed(running, apply(running, { kind: 'undo_over', atMs: T0 }))).toEqual({});
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
    ['while a person is asked what became of a call', turn({ phase: inDoubt }), 'waiting'],
    ['in a rest', turn({ phase: { kind: 'resting', untilMs: T0 + 9, cause: 'stalled' } }), 'resting'],
    ['in a compaction', turn({ phase: { kind: 'compacting', cause: 'window' } }), 'compacting'],
  ])('a cancel %s asks for the end that names the phase', (_where, state, phase) => {
    const after = apply(state, { kind: 'cancel_requested', atMs: T0 });
    expect(changed(state, after)).toEqual({ asked: { end: { ...CANCELLED, phase }, atMs: T0 } });
  });

  test('of two cancels the first stands', () => {
    const first = apply(turn(), { kind: 'cancel_requested', atMs: T0 });
    const later = apply({ ...first, phase: batch('queued') }, { kind: 'cancel_requested', atMs: T0 });
    expect(later.asked).toEqual({ end: { ...CANCELLED, phase: 'sampling' }, atMs: T0 });
  });

  test.each([
    ['store', 'storage'],
    ['tool', 'tool_infrastructure'],
    ['context', 'context_unusable'],
    ['code', 'internal'],
  ] as const)('a fault of %s is an ERROR with its dotted type', (source, detail) => {
    expect(endOf(apply(turn(), { kind: 'failed', type: 'x.y', source, atMs: T0 }))).toEqual({
      reason: 'ERROR',
      detail,
      decidedBy: 'runtime',
      signal: { name: 'fault', type: 'x.y' },
      phase: 'sampling',
    });
  });

  test.each<[where: string, state: TurnState]>([
    ['before a sample', turn()],
    ['in a batch that does not come back', turn({ phase: batch('running'), asked: CANCEL })],
    ['in a rest', turn({ phase: { kind: 'resting', untilMs: T0 + 9, cause: 'stalled' } })],
  ])('an end that is decided %s is where the turn stands', (_where, state) => {
    const decided = apply(state, { kind: 'end_decided', end: CANCELLED, atMs: T0 });
    expect(changed(state, decided)).toEqual({ phase: { kind: 'ending', end: CANCELLED } });
    expect(nextStep(decided, T0)).toEqual({ kind: 'finish', end: CANCELLED });
  });

  test.each<[name: string, event: TurnEvent]>([
    ['another end', { kind: 'end_decided', end: CANCELLED, atMs: T0 }],
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
    ['a question about an outcome does not', turn({ phase: inDoubt }), T0 + 100, 0, T0 + 100],
    [
      'unless something else runs meanwhile',
      turn({ phase: { ...inDoubt, calls: [...inDoubt.calls, { ref: ref(1), state: 'running' }] } }),
      T0 + 100,
      100,
      T0 + 100,
    ],
    ['it never runs backwards', turn({ runningMs: 5 }), T0 - 100, 5, T0],
  ])('%s', (_name, state, atMs, runningMs, lastMs) => {
    expect(apply(state, { kind: 'rested', atMs })).toMatchObject({ runningMs, atMs: lastMs });
  });

  // Trap: a night without a worker would use up the running time of a turn whose sample it interrupted.
  test('time in which nobody was there does not, also where something else was heard first', () => {
    const span = (from: number, to: number) => ({ fromMs: T0 + from, toMs: T0 + to });
    const away = [span(10, 40), span(50, 70)];
    const alone = apply(turn(), { kind: 'rested', atMs: T0 + 100, away });
    expect(alone).toMatchObject({ runningMs: 50, atMs: T0 + 100, awayToMs: T0 + 70 });
    const message = { kind: 'inputs_arrived', inputs: ['in_1'] } as const;
    const heardFirst = apply(turn(), { ...message, atMs: T0 + 90 });
    expect(heardFirst.runningMs).toBe(90);
    expect(apply(heardFirst, { kind: 'rested', atMs: T0 + 100, away }).runningMs).toBe(50);
  });

  test('two calls that nobody was there for lose that time once', () => {
    const away = [{ fromMs: T0, toMs: T0 + 60 }];
    const first = apply(turn(), { kind: 'rested', atMs: T0 + 70, away });
    expect(apply(first, { kind: 'rested', atMs: T0 + 100, away }).runningMs).toBe(40);
    const longer = [{ fromMs: T0 + 30, toMs: T0 + 90 }];
    expect(apply(first, { kind: 'rested', atMs: T0 + 100, away: longer }).runningMs).toBe(10);
  });
});
