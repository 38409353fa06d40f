import { allReturned, blockingCall, endingCall } from './batch.ts';
import { afterSuccess, compacted, needsCompaction, noRoom } from './compaction.ts';
import { answerArrived, decided, gated, outcomeAsked, outcomeHeard, waitSeen } from './deciding.ts';
import type { End } from './ends.ts';
import { endOfCode, endOfFuse, endOfReply, endOfReport, endOfUnknownEffect } from './endings.ts';
import { afterFailure } from './failures.ts';
import { POLICY } from './policy.ts';
import type { SampleOutcome } from './sample-outcome.ts';
import { beforeStop, stopGateAnswered } from './stop-gate.ts';
import type { CallStatus } from './tools.ts';
import type { TurnEvent } from './turn-event.ts';
import {
  type BatchCall,
  endPhaseOf,
  FRESH_TRIES,
  isWaiting,
  type Phase,
  type TurnState,
  withCalls,
} from './turn-state.ts';
import { addUsage } from './usage.ts';

/** The next state. Pure: the same state and event always give the same answer. */
export function apply(before: TurnState, event: TurnEvent): TurnState {
  const state = clocked(before, event.atMs);
  if (state.phase.kind === 'ending' && event.kind !== 'inputs_arrived') return state;
  switch (event.kind) {
    case 'sampled':
      return sampled(drained(state, event.drained, event.outcome), event.outcome, event.dice);
    case 'compacted': {
      const usage = 'usage' in event.outcome ? addUsage(state.usage, event.outcome.usage) : state.usage;
      return compacted({ ...state, usage }, event.outcome, event.dice);
    }
    case 'gated':
      return gated(state, event.ordinal, event.verdict);
    case 'wait_seen':
      return waitSeen(state, event.ordinal, event);
    case 'answer_arrived':
      return answerArrived(state, event.approval);
    case 'decided':
      return decided(state, event.ordinal, event.decision);
    case 'call_started':
      return withCall(state, event.ordinal, 'running');
    case 'call_finished':
      return withCall(state, event.ordinal, event.status);
    case 'outcome_asked':
      return outcomeAsked(state, event.ordinal, event);
    case 'outcome_heard':
      return outcomeHeard(state, event.ordinal);
    case 'batch_returned':
      return batchReturned(state);
    case 'stop_gate_answered':
      return stopGateAnswered(state, event.verdict);
    case 'undo_over':
      return state.asked ? ending(state, state.asked.end) : state;
    case 'rested':
      return rested(state);
    case 'inputs_arrived':
      return { ...state, inbox: [...new Set([...state.inbox, ...event.inputs])] };
    case 'cancel_requested':
      return state.asked ? state : { ...state, asked: { end: userCancel(state), atMs: event.atMs } };
    case 'failed':
      return ending(state, endOfCode(state, event.type, event.source));
  }
}

/** Rests and waits for a person are not running time; everything else is. */
function clocked(state: TurnState, atMs: number): TurnState {
  const spent = isWaiting(state.phase) ? 0 : Math.max(0, atMs - state.atMs);
  return { ...state, atMs: Math.max(atMs, state.atMs), runningMs: state.runningMs + spent };
}

/** A sample's first commit took results, inputs and reminders into the chain. */
function drained(state: TurnState, inputs: number, outcome: SampleOutcome): TurnState {
  if (outcome.kind === 'cut' && outcome.head === state.head) return state;
  return {
    ...state,
    head: outcome.head,
    inbox: state.inbox.slice(inputs),
    unappendedResults: 0,
    reminders: [],
  };
}

function rested(state: TurnState): TurnState {
  switch (state.phase.kind) {
    case 'resting':
      return { ...state, phase: { kind: 'ready' }, transition: 'retry_after_failure' };
    case 'compaction_resting':
      return { ...state, phase: { kind: 'compacting', cause: state.phase.cause } };
    default:
      return state;
  }
}

function sampled(state: TurnState, outcome: SampleOutcome, dice: number): TurnState {
  switch (outcome.kind) {
    case 'reply':
      return replied(succeeded({ ...state, usage: addUsage(state.usage, outcome.usage) }, outcome.empty), outcome);
    case 'cut':
      return { ...state, usage: addUsage(state.usage, outcome.usage), transition: 'continued' };
    case 'needs_compaction':
      return needsCompaction(state);
    case 'no_room':
      return noRoom(state, outcome.estimateTokens);
    case 'attempts_lost':
      return ending(state, {
        reason: 'ERROR',
        detail: 'internal',
        decidedBy: 'runtime',
        signal: { name: 'retries_spent', cause: 'attempts_lost', used: outcome.attempts },
        phase: 'sampling',
      });
    default:
      return afterFailure({ ...state, usage: addUsage(state.usage, outcome.usage) }, outcome, dice);
  }
}

/** An empty reply is none: what may happen once until a success is not given back. */
function succeeded(state: TurnState, empty: boolean): TurnState {
  return empty ? state : { ...state, context: afterSuccess(state.context) };
}

function replied(state: TurnState, reply: SampleOutcome & { kind: 'reply' }): TurnState {
  if (reply.calls.length > 0) return calling(state, reply);
  if (reply.finish === 'content_filter') return ending(state, endOfReply(state, 'refused'));
  if (reply.empty && state.tries.empty < POLICY.empty.resamples) {
    return {
      ...state,
      phase: { kind: 'ready' },
      resample: state.resample + 1,
      tries: { ...FRESH_TRIES, empty: state.tries.empty + 1, doom: state.tries.doom, cutCalls: state.tries.cutCalls },
      transition: 'resampled_empty',
    };
  }
  if (reply.empty) return ending(state, endOfReply(state, 'empty'));
  if (reply.finish === 'length') return ending(state, endOfReply(state, 'output_limit'));
  if (state.inbox.length > 0)
    return { ...state, phase: { kind: 'ready' }, tries: FRESH_TRIES, transition: 'input_arrived' };
  const end = endOfReply(state, 'final_answer');
  return beforeStop(state, reply, end) ?? ending(state, end);
}

function calling(state: TurnState, reply: SampleOutcome & { kind: 'reply' }): TurnState {
  const cutCalls = reply.finish === 'length' ? state.tries.cutCalls + 1 : 0;
  const calls = reply.calls.map((ref): BatchCall => ({ ref, state: ref.verdict === 'answered' ? 'error' : 'queued' }));
  const next: TurnState = {
    ...state,
    tries: { ...FRESH_TRIES, cutCalls },
    phase: { kind: 'batch', calls, fuse: null },
  };
  return cutCalls > POLICY.cutCalls.stepsInARow ? ending(next, endOfReply(next, 'cut_calls')) : next;
}

function batchReturned(state: TurnState): TurnState {
  if (state.phase.kind === 'carried') return carriedReturned(state, state.phase.call);
  if (state.phase.kind !== 'batch') return state;
  const { calls, fuse } = state.phase;
  const kept: TurnState = { ...state, unappendedResults: calls.length };
  // What the cancel cut is still to be looked at.
  if (state.asked) return kept;
  const ends = endingCall(calls);
  if (ends) return ending(kept, endOfUnknownEffect());
  if (!allReturned(calls)) return kept;
  const fused = fuse === null ? null : endOfFuse(fuse);
  if (fused) return ending(kept, fused);
  const blockedOn = blockingCall(calls);
  if (blockedOn) return ending(kept, endOfReport(blockedOn));
  return {
    ...kept,
    phase: { kind: 'ready' },
    step: state.step + 1,
    resample: 0,
    transition: 'tool_results',
  };
}

/** Its outcome reaches the model with the input that opened the turn, never as a second result; no step of this turn. */
function carriedReturned(state: TurnState, call: BatchCall): TurnState {
  // What the cancel cut is still to be looked at.
  if (state.asked) return state;
  if (endingCall([call])) return ending(state, endOfUnknownEffect());
  if (!allReturned([call])) return state;
  return { ...state, phase: { kind: 'ready' }, transition: 'carried_call' };
}

function withCall(state: TurnState, ordinal: number, to: 'running' | CallStatus): TurnState {
  return withCalls(state, (call) =>
    call.ref.ordinal === ordinal && mayBecome(call.state, to) ? { ref: call.ref, state: to } : call,
  );
}

/** A call begins once and comes back once. */
function mayBecome(from: BatchCall['state'], to: BatchCall['state']): boolean {
  if (from === 'queued') return true;
  return (from === 'running' || from === 'waiting' || from === 'in_doubt') && to !== 'running';
}

function ending(state: TurnState, end: End): TurnState {
  const phase: Phase = { kind: 'ending', end };
  return { ...state, phase };
}

function userCancel(state: TurnState): End {
  return {
    reason: 'ABORTED',
    detail: 'user_cancel',
    decidedBy: 'user',
    signal: { name: 'cancel_request' },
    phase: endPhaseOf(state.phase),
  };
}
