import { POLICY } from './policy.ts';
import type { Decision, Fuse, GateVerdict } from './gate.ts';
import type { OutcomeAsked } from './tools.ts';
import { type BatchCall, type TurnState, withCalls } from './turn-state.ts';

/** The gate has judged a call. */
export function gated(state: TurnState, ordinal: number, verdict: GateVerdict): TurnState {
  return withDecided(state, ordinal, (call): BatchCall => {
    switch (verdict.kind) {
      case 'run':
        return { ref: { ...verdict.ref, verdict: 'run' }, state: 'queued' };
      case 'denied':
        return { ref: call.ref, state: 'denied' };
      case 'ask':
        return { ref: call.ref, state: 'asking', approval: verdict.approval, untilMs: verdict.untilMs };
    }
  });
}

/** An answer lies in the store: its wait is over now. An approval that is not asked for is nobody's. */
export function answerArrived(state: TurnState, approval: string): TurnState {
  return withCalls(state, (call) =>
    'approval' in call && call.approval === approval ? { ...call, untilMs: 0 } : call,
  );
}

/** A waiting call was looked at: it waits (still). */
export function waitSeen(state: TurnState, ordinal: number, seen: { wait: string; untilMs: number }): TurnState {
  return withCalls(state, (call) => {
    const waits = call.ref.ordinal === ordinal && (call.state === 'running' || call.state === 'waiting');
    return waits ? { ref: call.ref, state: 'waiting', approval: seen.wait, untilMs: seen.untilMs } : call;
  });
}

/** Where the store's clock is behind the engine's, what is over for one is not for the other: looked at again soon. */
function afterSkew({ atMs }: TurnState, untilMs: number): number {
  return untilMs > atMs ? untilMs : atMs + POLICY.waits.skewMs;
}

/** A call that acted, and whose outcome a person is to tell. */
export function outcomeAsked(state: TurnState, ordinal: number, { approval, untilMs }: OutcomeAsked): TurnState {
  return withCalls(state, (call) =>
    call.ref.ordinal === ordinal && call.state === 'running'
      ? { ref: call.ref, state: 'in_doubt', approval, untilMs }
      : call,
  );
}

/** It goes on with what the person said, which may be to send it again. */
export function outcomeHeard(state: TurnState, ordinal: number): TurnState {
  return withCalls(state, (call) =>
    call.ref.ordinal === ordinal && call.state === 'in_doubt' ? { ref: call.ref, state: 'running' } : call,
  );
}

/** What the answer means: for this call, and, where a person stopped it, for everything after it. */
export function decided(state: TurnState, ordinal: number, decision: Decision): TurnState {
  switch (decision.kind) {
    case 'approved':
      return withDecided(state, ordinal, () => ({ ref: { ...decision.ref, verdict: 'run' }, state: 'queued' }));
    case 'pending':
      return withDecided(state, ordinal, (call) =>
        call.state === 'asking' ? { ...call, untilMs: afterSkew(state, decision.untilMs) } : call,
      );
    case 'denied':
      return withDecided(state, ordinal, (call) => ({ ref: call.ref, state: 'denied' }));
    case 'message':
      return blown({ ...state, inbox: [...new Set([...state.inbox, decision.input])] }, ordinal, 'message');
    case 'rejected':
    case 'cancelled':
    case 'expired':
      return blown(state, ordinal, decision.kind);
  }
}

/** Calls before it still run, and their results are kept; it and everything after it never start. */
function blown(state: TurnState, ordinal: number, cause: Fuse['cause']): TurnState {
  if (state.phase.kind !== 'batch') return state;
  const asked = state.phase.calls.find((call) => call.ref.ordinal === ordinal);
  if (asked?.state !== 'asking') return state;
  const calls = state.phase.calls.map((call): BatchCall => {
    if (call === asked) return { ref: call.ref, state: cause === 'expired' ? 'blocked_on_approval' : 'denied' };
    const isLater = call.ref.ordinal > ordinal && (call.state === 'queued' || call.state === 'asking');
    return isLater ? { ref: call.ref, state: 'fused' } : call;
  });
  return { ...state, phase: { ...state.phase, calls, fuse: { cause, approval: asked.approval } } };
}

function withDecided(state: TurnState, ordinal: number, decide: (call: BatchCall) => BatchCall): TurnState {
  if (state.phase.kind !== 'batch') return state;
  const calls = state.phase.calls.map((call) =>
    call.ref.ordinal === ordinal && isUndecided(call) ? decide(call) : call,
  );
  return { ...state, phase: { ...state.phase, calls } };
}

function isUndecided(call: BatchCall): boolean {
  return call.state === 'asking' || (call.state === 'queued' && call.ref.verdict === 'gate');
}
