import { describe, expect, test } from 'vitest';
import { apply } from '../../workflows/core/apply.ts';
import { nextStep, type Step } from '../../workflows/core/next-step.ts';
import { NO_USAGE } from '../../workflows/core/sample-outcome.ts';
import type { TurnEvent } from '../../workflows/core/turn-event.ts';
import type { Phase, TurnState } from '../../workflows/core/turn-state.ts';
import { cutsReaders, cutsRest, pressing } from '../../workflows/core/urgent.ts';
import { batch, CANCELLED, COMPLETED, endOf, ref, T0, turn, USAGE } from './fixtures.ts';

type Interruption = 'steer' | 'send_now' | 'cancel';

const heard: Readonly<Record<Interruption, TurnEvent>> = {
  steer: { kind: 'inputs_arrived', inputs: ['in_new'], atMs: T0 },
  send_now: { kind: 'inputs_arrived', inputs: ['in_new'], urgent: ['in_new'], atMs: T0 },
  cancel: { kind: 'cancel_requested', atMs: T0 },
};

const asking: Phase = {
  kind: 'batch',
  calls: [{ ref: ref(0), state: 'asking', approval: 'apr', untilMs: T0 + 1_000 }],
  fuse: null,
};
const waiting: Phase = {
  kind: 'batch',
  calls: [{ ref: ref(0, { runs: 'wait' }), state: 'waiting', approval: 'w', untilMs: T0 + 1_000 }],
  fuse: null,
};

/** The phases of a turn, and what the step that runs in each is told: `message`: to be cut for it; `cancel`: to end. */
const PHASES: readonly [phase: string, kind: Phase, onSendNow: 'goes on' | 'message' | 'ends rest'][] = [
  ['sampling', { kind: 'ready' }, 'message'],
  ['gate', asking, 'message'],
  ['tools', batch('running'), 'message'],
  ['waiting', waiting, 'message'],
  ['resting', { kind: 'resting', untilMs: T0 + 60_000, cause: 'rate_limited' }, 'ends rest'],
  ['compacting', { kind: 'compaction_resting', untilMs: T0 + 60_000, cause: 'window' }, 'goes on'],
  ['ending', { kind: 'stop_gate', end: COMPLETED }, 'message'],
];

describe.each(PHASES)('while %s', (_, phase, onSendNow) => {
  const before = turn({ phase, inbox: [] });

  test('a steer waits in the inbox, and presses nobody', () => {
    const after = apply(before, heard.steer);
    expect([after.inbox, pressing(after), cutsRest(after), after.phase]).toEqual([['in_new'], null, false, phase]);
  });

  test('a send-now waits in the inbox, and presses whoever can be cut', () => {
    const after = apply(before, heard.send_now);
    expect([after.inbox, pressing(after), cutsRest(after)]).toEqual([['in_new'], 'in_new', onSendNow === 'ends rest']);
    // The step itself goes on: what becomes of it is for it to come back with.
    expect(after.phase).toEqual(phase);
  });

  test('a cancel is the end, whatever the step comes back with', () => {
    const after = apply(before, heard.cancel);
    expect(nextStep(after, T0)).toMatchObject({ kind: 'finish', end: { reason: 'ABORTED', detail: 'user_cancel' } });
  });
});

describe('in cleanup', () => {
  const ending = turn({ phase: { kind: 'ending', end: CANCELLED }, inbox: [] });

  test.each(['steer', 'send_now'] as const)('a %s changes nothing: the end says what becomes of it', (kind) => {
    const after = apply(ending, heard[kind]);
    expect([after.phase, nextStep(after, T0).kind]).toEqual([ending.phase, 'finish']);
  });

  test('a second cancel changes nothing', () => {
    expect(apply(ending, heard.cancel)).toEqual(ending);
  });
});

describe('a cut', () => {
  const sampled = (head: string, drained: number): TurnEvent => ({
    kind: 'sampled',
    outcome: { kind: 'cut', head, usage: USAGE },
    drained,
    dice: 0,
    atMs: T0,
  });
  const inputs = (state: TurnState) => (nextStep(state, T0) as Step & { kind: 'sample' }).inputs;

  test('of a stream goes on in the same turn, under another key, with the message; it is paid for', () => {
    const tries = { transport: 3, empty: 1 };
    const cut = apply(apply(turn({ tries }), heard.send_now), sampled('h9', 1));
    expect(cut).toMatchObject({ head: 'h9', resample: 1, transition: 'message_cut_in', usage: USAGE });
    // Troubles on the way are forgotten, as for any other request; those with the model are not.
    expect([cut.tries.transport, cut.tries.empty]).toEqual([0, 1]);
    expect([endOf(cut), inputs(cut)]).toEqual([null, ['in_new']]);
  });

  test('of a stream before its first commit loses nothing', () => {
    const state = apply(turn(), heard.send_now);
    expect(inputs(apply(state, sampled('h0', 0)))).toEqual(['in_1', 'in_new']);
  });

  test('of a rest samples at once', () => {
    const resting = turn({ phase: { kind: 'resting', untilMs: T0 + 60_000, cause: 'overloaded' }, inbox: [] });
    const rested = apply(apply(resting, heard.send_now), { kind: 'rested', atMs: T0 + 5 });
    expect(rested).toMatchObject({ phase: { kind: 'ready' }, resample: 1, transition: 'message_cut_in' });
    expect(inputs(rested)).toEqual(['in_new']);
  });

  test('of the stop gate goes on with the message, if no hook was faster', () => {
    const asked = apply(turn({ phase: { kind: 'stop_gate', end: COMPLETED }, inbox: [] }), heard.send_now);
    const cut = apply(asked, { kind: 'stop_gate_answered', verdict: { kind: 'pass' }, atMs: T0 });
    expect([cut.transition, inputs(cut)]).toEqual(['input_arrived', ['in_new']]);
    const stopped = apply(asked, { kind: 'stop_gate_answered', verdict: { kind: 'stop', hook: 'h' }, atMs: T0 });
    expect(endOf(stopped)).toMatchObject({ detail: 'hook_stop' });
  });

  test('of readers is none for a steer, outside a batch, and for calls that the message itself let run', () => {
    const reading = turn({ phase: batch('running'), inbox: [] });
    const sentTo = (state: TurnState) => cutsReaders(apply(state, heard.send_now));
    expect([sentTo(reading), cutsReaders(apply(reading, heard.steer))]).toEqual([true, false]);
    expect(sentTo(turn({ phase: { kind: 'stop_gate', end: COMPLETED }, inbox: [] }))).toBe(false);
    const fuse = { cause: 'message', approval: 'apr' } as const;
    expect(sentTo(turn({ phase: { ...batch('running'), fuse }, inbox: [] }))).toBe(false);
  });

  test('of an approval is the fuse: its message is in the inbox once', () => {
    const state = apply(turn({ phase: asking, inbox: [] }), heard.send_now);
    const decision = { kind: 'message', input: 'in_new' } as const;
    const fused = apply(state, { kind: 'decided', ordinal: 0, decision, atMs: T0 });
    const over = apply(fused, { kind: 'batch_returned', atMs: T0 });
    expect([endOf(over), over.inbox, inputs(over)]).toEqual([null, ['in_new'], ['in_new']]);
  });
});

describe('a message that could not wait', () => {
  const taken = apply(apply(turn(), heard.send_now), {
    kind: 'sampled',
    outcome: { kind: 'overloaded', status: 529, afterMs: null, head: 'h1', usage: NO_USAGE },
    drained: 2,
    dice: 0.5,
    atMs: T0,
  });

  test('presses nobody once a commit has taken it, so that the rest behind it is one', () => {
    expect([taken.inbox, pressing(taken), cutsRest(taken)]).toEqual([[], null, false]);
  });

  // Trap: the session may tell of it once more, just when the next stream runs.
  test('is not heard again', () => {
    expect(apply(taken, heard.send_now)).toEqual(taken);
  });

  test('presses nobody in the sample that takes it in', () => {
    const state = apply(turn(), heard.send_now);
    expect(pressing(state, inputsOf(state))).toBeNull();
    const later = apply(state, { kind: 'inputs_arrived', inputs: ['in_2'], urgent: ['in_2'], atMs: T0 });
    expect(pressing(later, inputsOf(state))).toBe('in_2');
  });
});

function inputsOf(state: TurnState): readonly string[] {
  return (nextStep(state, T0) as Step & { kind: 'sample' }).inputs;
}
