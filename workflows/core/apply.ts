import type { AgentsCount } from './agents.ts';
import { allReturned, blockingCall, endingCall } from './batch.ts';
import { afterSuccess, compacted, needsCompaction, noRoom } from './compaction.ts';
import { answerArrived, decided, gated, outcomeAsked, outcomeHeard, waitSeen } from './deciding.ts';
import type { End } from './ends.ts';
import { endOfCode, endOfFuse, endOfReport, endOfUnknownEffect } from './endings.ts';
import { withSucceeded } from './ending-checks/contract.ts';
import { afterFailure } from './failures.ts';
import { ending, resampling } from './going-on.ts';
import { replied } from './replied.ts';
import type { SampleOutcome } from './sample-outcome.ts';
import { isNudgeDue, repeated } from './stationarity.ts';
import { stopGateAnswered } from './stop-gate.ts';
import { NO_REPEATS } from './turn-counters.ts';
import type { CallStatus } from './tools.ts';
import type { TurnEvent } from './turn-event.ts';
import {
  type BatchCall,
  endPhaseOf,
  isWaiting,
  resampledTries,
  type RestCause,
  type TurnState,
  withCalls,
} from './turn-state.ts';
import { awayFor } from './delayed.ts';
import type { Transition } from './transition.ts';
import { arrived, cutsRest } from './urgent.ts';
import { addUsage } from './usage.ts';

/** The next state. Pure: the same state and event always give the same answer. */
export function apply(before: TurnState, event: TurnEvent): TurnState {
  const state = clocked(before, event);
  if (state.phase.kind === 'ending' && event.kind !== 'inputs_arrived') return state;
  switch (event.kind) {
    case 'sampled':
      return sampled(
        withAgents(drained(state, event.drained, event.outcome), event.outcome.agents),
        event.outcome,
        event.dice,
      );
    case 'compacted': {
      const usage = 'usage' in event.outcome ? addUsage(state.usage, event.outcome.usage) : state.usage;
      return compacted({ ...state, usage }, event.outcome, event.dice);
    }
    case 'gated':
      return gated(state, event.ordinal, event.verdict);
    case 'wait_seen':
      return waitSeen(state, event.ordinal, event);
    case 'agents_counted':
      return withAgents(state, event.agents);
    case 'answer_arrived':
      return answerArrived(state, event.approval);
    case 'decided':
      return decided(state, event.ordinal, event.decision);
    case 'call_started':
      return withCall(state, event.ordinal, 'running');
    case 'call_finished':
      return withCall(state, event.ordinal, event.status, event.stillRuns);
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
      return arrived(state, event.inputs, event.urgent ?? []);
    case 'cancel_requested':
      return state.asked ? state : { ...state, asked: { end: userCancel(state), atMs: event.atMs } };
    case 'end_decided':
      return ending(state, event.end);
    case 'failed':
      return ending(state, endOfCode(state, event.type, event.source));
  }
}

/** Two looks at once may come back in the wrong order: the newest count stands. */
function withAgents(state: TurnState, agents: AgentsCount | undefined): TurnState {
  return agents && agents.version >= (state.agents?.version ?? 0) ? { ...state, agents } : state;
}

/**
 * Rests, waits for a person, and time in which nobody was there are not running time; everything else is. Who was away
 * is told late, when something else may have been heard already, so that what was counted meanwhile is taken back.
 */
function clocked(state: TurnState, { atMs, away = [] }: Pick<TurnEvent, 'atMs' | 'away'>): TurnState {
  const spent = isWaiting(state.phase) ? 0 : Math.max(0, atMs - state.atMs);
  const next = { ...state, atMs: Math.max(atMs, state.atMs), runningMs: state.runningMs + spent };
  if (away.length === 0) return next;
  const { awayMs, toMs } = awayFor(away, state.awayToMs ?? 0);
  return { ...next, runningMs: Math.max(0, next.runningMs - awayMs), awayToMs: toMs };
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
    follows: inputs > 0 ? 'input' : state.unappendedResults > 0 ? 'results' : state.follows,
    // Somebody has brought something new: the same calls may mean something else now.
    repeats: inputs > 0 ? NO_REPEATS : state.repeats,
  };
}

function rested(state: TurnState): TurnState {
  switch (state.phase.kind) {
    case 'resting':
      if (cutsRest(state)) return { ...cutShort(state), phase: { kind: 'ready' } };
      return { ...state, phase: { kind: 'ready' }, transition: afterRest(state.phase.cause) };
    case 'compaction_resting':
      return { ...state, phase: { kind: 'compacting', cause: state.phase.cause } };
    default:
      return state;
  }
}

function afterRest(cause: RestCause): Transition {
  if (cause === 'outage') return 'retry_after_outage';
  return cause === 'contract' ? 'contract_rerun' : 'retry_after_failure';
}

function sampled(state: TurnState, outcome: SampleOutcome, dice: number): TurnState {
  switch (outcome.kind) {
    case 'reply':
      return replied(succeeded({ ...state, usage: addUsage(state.usage, outcome.usage) }, outcome.empty), outcome);
    case 'cut':
      return cutShort({ ...state, usage: addUsage(state.usage, outcome.usage) });
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

/** The turn ends on a cancel; on a message it goes on with another request, so troubles on the way are forgotten. */
function cutShort(state: TurnState): TurnState {
  if (state.asked) return { ...state, transition: 'continued' };
  return { ...resampling(state, 'message_cut_in'), tries: resampledTries(state.tries) };
}

/** An empty reply is none: what may happen once until a success is not given back. */
function succeeded(state: TurnState, empty: boolean): TurnState {
  return empty ? state : { ...state, context: afterSuccess(state.context) };
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
  return stepDone(kept, calls);
}

function stepDone(state: TurnState, calls: readonly BatchCall[]): TurnState {
  const repeats = repeated(state.repeats, calls);
  return {
    ...withSucceeded(state, calls),
    phase: { kind: 'ready' },
    step: state.step + 1,
    resample: 0,
    outage: { ...state.outage, inStep: 0 },
    follows: 'results',
    repeats,
    reminders: isNudgeDue(repeats) ? ['identical_steps'] : [],
    transition: 'tool_results',
  };
}

/** Its outcome reaches the model with the input that opened the turn, never as a second result; no step of this turn. */
function carriedReturned(state: TurnState, call: BatchCall): TurnState {
  // What the cancel cut is still to be looked at.
  if (state.asked) return state;
  if (endingCall([call])) return ending(state, endOfUnknownEffect());
  if (!allReturned([call])) return state;
  return { ...withSucceeded(state, [call]), phase: { kind: 'ready' }, transition: 'carried_call' };
}

function withCall(state: TurnState, ordinal: number, to: 'running' | CallStatus, stillRuns?: true): TurnState {
  return withCalls(state, (call) =>
    call.ref.ordinal === ordinal && mayBecome(call.state, to)
      ? { ref: call.ref, state: to, ...(stillRuns && { stillRuns }) }
      : call,
  );
}

/** A call begins once and comes back once. */
function mayBecome(from: BatchCall['state'], to: BatchCall['state']): boolean {
  if (from === 'queued') return true;
  return (from === 'running' || from === 'waiting' || from === 'in_doubt') && to !== 'running';
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
