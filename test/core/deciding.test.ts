import { describe, expect, test } from 'vitest';
import { apply } from '../../workflows/core/apply.ts';
import type { End } from '../../workflows/core/ends.ts';
import type { Decision, GateVerdict } from '../../workflows/core/gate.ts';
import { nextStep } from '../../workflows/core/next-step.ts';
import type { CallStatus } from '../../workflows/core/tools.ts';
import type { TurnEvent } from '../../workflows/core/turn-event.ts';
import { type BatchCall, callsOf, type TurnState } from '../../workflows/core/turn-state.ts';
import { endOf, frozen, ref, T0, turn } from './fixtures.ts';

const gated = (ordinal: number) => ref(ordinal, { verdict: 'gate' });
const asking = (ordinal: number): BatchCall => ({
  ref: gated(ordinal),
  state: 'asking',
  approval: `apr_${ordinal}`,
  untilMs: T0 + 1_000,
});

/** c0 needs no leave, c1 has it, c2 is asked about, c3 is not judged yet, c4 needs no leave, c5 is answered already. */
const batch: readonly BatchCall[] = [
  { ref: ref(0), state: 'queued' },
  { ref: ref(1), state: 'queued' },
  asking(2),
  { ref: gated(3), state: 'queued' },
  { ref: ref(4), state: 'queued' },
  { ref: ref(5, { verdict: 'answered' }), state: 'error' },
];
const before = turn({ phase: { kind: 'batch', calls: batch, fuse: null } });
const states = (state: TurnState) => callsOf(state.phase).map((call) => call.state);
const decide = (decision: Decision, ordinal = 2) =>
  apply(before, frozen({ kind: 'decided', ordinal, decision, atMs: T0 }));

/** Everything that may still run comes back; then the batch does. */
function playedOut(state: TurnState): TurnState {
  const run = (now: TurnState, ordinal: number): TurnState => {
    const started = apply(now, { kind: 'call_started', ordinal, atMs: T0 });
    return apply(started, { kind: 'call_finished', ordinal, status: 'ok', atMs: T0 });
  };
  const open = callsOf(state.phase).filter((call) => call.state === 'queued');
  return apply(open.map(({ ref: { ordinal } }) => ordinal).reduce(run, state), { kind: 'batch_returned', atMs: T0 });
}

describe('the fuse', () => {
  const approval = { name: 'approval', id: 'apr_2' } as const;
  test.each<[decision: Decision, own: CallStatus, cause: string, end: End | null, inbox: string[]]>([
    [
      { kind: 'rejected' },
      'denied',
      'rejected',
      { reason: 'ABORTED', detail: 'permission_rejected', decidedBy: 'user', signal: approval, phase: 'gate' },
      ['in_1'],
    ],
    [
      { kind: 'cancelled' },
      'denied',
      'cancelled',
      { reason: 'ABORTED', detail: 'permission_cancelled', decidedBy: 'user', signal: approval, phase: 'gate' },
      ['in_1'],
    ],
    [
      { kind: 'expired' },
      'blocked_on_approval',
      'expired',
      { reason: 'BLOCKED', detail: 'awaiting_approval', decidedBy: 'runtime', signal: approval, phase: 'gate' },
      ['in_1'],
    ],
    [{ kind: 'message', input: 'in_9' }, 'denied', 'message', null, ['in_1', 'in_9']],
  ])('%j stops everything after it, and nothing before it', (decision, own, cause, end, inbox) => {
    const blown = decide(decision);
    expect(states(blown)).toEqual(['queued', 'queued', own, 'fused', 'fused', 'error']);
    expect(blown.phase).toMatchObject({ fuse: { cause, approval: 'apr_2' } });
    expect(nextStep(blown, T0)).toEqual({ kind: 'runTools' });
    const over = playedOut(blown);
    expect(endOf(over)).toEqual(end);
    expect(over).toMatchObject({ unappendedResults: 6, inbox });
    if (end === null) expect(nextStep(over, T0)).toMatchObject({ kind: 'sample', results: 6, inputs: inbox });
  });
});

describe('what is data stops only its own call', () => {
  test.each<[decision: Decision, own: BatchCall['state'], next: ReturnType<typeof nextStep>]>([
    [{ kind: 'denied' }, 'denied', { kind: 'gate', ordinal: 3 }],
    [{ kind: 'approved', ref: ref(2) }, 'queued', { kind: 'gate', ordinal: 3 }],
    [
      { kind: 'pending', untilMs: T0 + 500 },
      'asking',
      { kind: 'awaitDecision', ordinal: 2, approval: 'apr_2', forMs: 500 },
    ],
  ])('%j', (decision, own, next) => {
    const after = decide(decision);
    expect(states(after)).toEqual(['queued', 'queued', own, 'queued', 'queued', 'error']);
    expect(after.phase).toMatchObject({ fuse: null });
    expect(nextStep(after, T0)).toEqual(next);
  });

  test.each<[verdict: GateVerdict, own: BatchCall['state']]>([
    [{ kind: 'denied' }, 'denied'],
    [{ kind: 'run', ref: ref(3) }, 'queued'],
    [{ kind: 'ask', approval: 'apr_3', untilMs: T0 + 9 }, 'asking'],
  ])('the gate says %j', (verdict, own) => {
    const after = apply(before, frozen({ kind: 'gated', ordinal: 3, verdict, atMs: T0 }));
    expect(states(after)).toEqual(['queued', 'queued', 'asking', own, 'queued', 'error']);
  });
});

// A decision that is repeated, or that comes for a call that nobody asked about, must not change what stands.
describe('what was decided stays decided', () => {
  const kinds: Decision[] = [
    { kind: 'approved', ref: ref(0) },
    { kind: 'denied' },
    { kind: 'rejected' },
    { kind: 'cancelled' },
    { kind: 'expired' },
  ];
  test.each(kinds)('%j of a call that is not asked about', (decision) => {
    for (const ordinal of [0, 5, 9]) expect(states(decide(decision, ordinal))).toEqual(states(before));
  });

  test.each(kinds)('%j after a no', (decision) => {
    const no = decide({ kind: 'rejected' });
    const again = apply(no, frozen({ kind: 'decided', ordinal: 2, decision, atMs: T0 }));
    expect(states(again)).toEqual(states(no));
    expect(again.phase).toMatchObject({ fuse: { cause: 'rejected' } });
  });
});

test.each<[approval: string, untilMs: number]>([
  ['apr_2', 0],
  ['apr_of_nobody', T0 + 1_000],
])('a word about %s: the wait for it is over at %d', (approval, untilMs) => {
  const after = apply(before, { kind: 'answer_arrived', approval, atMs: T0 } satisfies TurnEvent);
  expect(callsOf(after.phase)[2]).toMatchObject({ state: 'asking', untilMs });
});

test('calls are asked about one after the other, in call order, and nothing runs before all are decided', () => {
  const first = turn({
    phase: { kind: 'batch', calls: [0, 1, 2].map((n) => ({ ref: gated(n), state: 'queued' })), fuse: null },
  });
  const ask = (n: number): GateVerdict => ({ kind: 'ask', approval: `apr_${n}`, untilMs: T0 + 9 });
  const steps = [nextStep(first, T0)];
  let state: TurnState = first;
  for (const n of [0, 1, 2]) {
    state = apply(state, { kind: 'gated', ordinal: n, verdict: ask(n), atMs: T0 });
    steps.push(nextStep(state, T0));
    state = apply(state, { kind: 'decided', ordinal: n, decision: { kind: 'approved', ref: ref(n) }, atMs: T0 });
    steps.push(nextStep(state, T0));
  }
  expect(steps.map((step) => ('ordinal' in step ? `${step.kind} ${step.ordinal}` : step.kind))).toEqual([
    'gate 0',
    'awaitDecision 0',
    'gate 1',
    'awaitDecision 1',
    'gate 2',
    'awaitDecision 2',
    'runTools',
  ]);
});
