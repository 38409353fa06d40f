import type { AgentsCount } from './agents.ts';
import type { CompactionCause } from './compact-outcome.ts';
import type { End, EndPhase } from './ends.ts';
import type { Fuse } from './gate.ts';
import type { Limits } from './policy.ts';
import { NO_USAGE, type ProviderFailure, type Usage } from './sample-outcome.ts';
import type { CallRef, CallStatus } from './tools.ts';
import {
  type AnswerState,
  type ContextTries,
  type ContractState,
  FRESH_CONTEXT,
  FRESH_OUTPUT,
  FRESH_TARGET,
  NO_OUTAGE,
  NO_REPEATS,
  type Outage,
  type OutputTries,
  type Repeats,
  type StopGateCount,
  type TargetState,
} from './turn-counters.ts';
import type { Transition } from './transition.ts';
import type { TurnRules } from './turn-rules.ts';

/**
 * A call of the running batch: not begun (and not gated yet, while its verdict says `gate`), waiting for a
 * person's decision, running, in doubt (it acted, and a person is to say what became of it), or how it came back.
 */
export type BatchCall = { readonly ref: CallRef } & (
  | { readonly state: 'queued' | 'running' | CallStatus; readonly stillRuns?: true }
  | { readonly state: 'asking'; readonly approval: string; readonly untilMs: number }
  | { readonly state: 'waiting'; readonly approval: string; readonly untilMs: number }
  | { readonly state: 'in_doubt'; readonly approval: string; readonly untilMs: number }
);

/** A call that the turn before asked for, and that a person has allowed since: this turn opens with it. */
export interface CarriedCall {
  /** The message that asked for it; the ledger keeps it under the key it had. */
  readonly assistant: string;
  readonly ref: CallRef;
}

/** An end that somebody outside the loop asked for, and when, ms since the epoch: cleaning up counts from there. */
export interface AskedEnd {
  readonly end: End;
  readonly atMs: number;
}

/** What is waited out: a failure of the provider, all of them after the retries, or the delay before a rerun. */
export type RestCause = ProviderFailure['kind'] | 'outage' | 'contract';

/** Where the loop stands. Fields belong to the phase that has them. */
export type Phase =
  | { readonly kind: 'ready' }
  | { readonly kind: 'carried'; readonly assistant: string; readonly call: BatchCall }
  | { readonly kind: 'compacting'; readonly cause: CompactionCause }
  /** A back-off between two tries of a compaction. */
  | { readonly kind: 'compaction_resting'; readonly untilMs: number; readonly cause: CompactionCause }
  | { readonly kind: 'resting'; readonly untilMs: number; readonly cause: RestCause }
  | { readonly kind: 'batch'; readonly calls: readonly BatchCall[]; readonly fuse: Fuse | null }
  /** The model is done, and whoever may object is asked; without objection the turn ends with `end`. */
  | { readonly kind: 'stop_gate'; readonly end: End }
  | { readonly kind: 'ending'; readonly end: End };

/** Fixed sentences that the runtime itself may put before the model, by code. */
export type Reminder =
  | 'empty_reply'
  | 'output_cut'
  | 'answer_cut'
  | 'calls_missing'
  | 'structured_output'
  | 'contract'
  | 'todo'
  | 'stop_gate'
  | 'token_target'
  | 'identical_steps'
  | 'images_stripped'
  /** Put there when a session is rewound or forked, never by a turn. */
  | 'rewound'
  | 'forked';

/** Budgets of recovery: each its own, using one up never touches another. */
export interface Tries {
  readonly transport: number;
  readonly rateLimit: number;
  /** How long this sample has been parked by quotas and long waits, ms. */
  readonly parkedMs: number;
  readonly auth: number;
  readonly empty: number;
  readonly doom: number;
  readonly emptyNudges: number;
  /** Replies in a row that promised calls and brought none. */
  readonly callless: number;
  /** Overloads in a row. */
  readonly overloads: number;
  readonly cutCalls: number;
}

export const FRESH_TRIES: Tries = {
  transport: 0,
  rateLimit: 0,
  parkedMs: 0,
  auth: 0,
  empty: 0,
  doom: 0,
  emptyNudges: 0,
  callless: 0,
  overloads: 0,
  cutCalls: 0,
};

/** The request goes out with other bytes: troubles on the way are forgotten, those with the model are not. */
export function resampledTries({ empty, emptyNudges, doom, callless, cutCalls }: Tries): Tries {
  return { ...FRESH_TRIES, empty, emptyNudges, doom, callless, cutCalls };
}

/** The whole turn as one JSON value: query result, test fixture and continue-as-new argument. */
export interface TurnState {
  readonly phase: Phase;
  /** Hash of the newest message of the chain. */
  readonly head: string;
  /** Tool rounds that are done. */
  readonly step: number;
  /** How often this step's request was made anew with other bytes; part of the sample's key. */
  readonly resample: number;
  /** Calls of the assistant message `head` whose results the next commit appends. */
  readonly unappendedResults: number;
  /** Inputs that the next commit appends, first in first out. */
  readonly inbox: readonly string[];
  /** Every message that could not wait, heard in this turn; absent until one comes. */
  readonly urgent?: readonly string[];
  readonly reminders: readonly Reminder[];
  readonly rules: TurnRules;
  readonly limits: Limits;
  readonly usage: Usage;
  /** Time spent working; rests and waits do not count. */
  readonly runningMs: number;
  /** Up to when it is counted that nobody was there, ms since the epoch; absent: always somebody was. */
  readonly awayToMs?: number;
  /** When the state last changed, ms since the epoch. */
  readonly atMs: number;
  readonly tries: Tries;
  /** Absent until the gate is asked. */
  readonly stopGate?: StopGateCount;
  /** Absent where the session has no sub-agents. */
  readonly agents?: AgentsCount;
  readonly context: ContextTries;
  readonly outage: Outage;
  readonly output: OutputTries;
  /** Which of the agent's models answers. */
  readonly model: 'primary' | 'fallback';
  /** What the model has to react to: the newest thing that it did not say itself. */
  readonly follows: 'input' | 'results';
  readonly repeats: Repeats;
  readonly answer: AnswerState;
  readonly contract: ContractState;
  readonly todoNudges: number;
  readonly target: TargetState;
  readonly transition: Transition;
  /** It wins at the next look. */
  readonly asked: AskedEnd | null;
}

export interface TurnStart {
  readonly head: string;
  readonly inputs: readonly string[];
  readonly rules: TurnRules;
  readonly limits: Limits;
  readonly atMs: number;
  readonly carried: CarriedCall | null;
  /** Set where sub-agents of the session run already. */
  readonly agents?: AgentsCount;
}

export function openTurn(start: TurnStart): TurnState {
  return {
    phase: openingPhase(start.carried),
    head: start.head,
    step: 0,
    resample: 0,
    unappendedResults: 0,
    inbox: start.inputs,
    reminders: [],
    rules: start.rules,
    limits: start.limits,
    usage: NO_USAGE,
    runningMs: 0,
    atMs: start.atMs,
    tries: FRESH_TRIES,
    context: FRESH_CONTEXT,
    outage: NO_OUTAGE,
    output: FRESH_OUTPUT,
    model: 'primary',
    follows: 'input',
    repeats: NO_REPEATS,
    answer: { schema: start.rules.schema === 'asked' ? 'asks' : 'none', retries: 0, message: null, fault: null },
    contract: { succeeded: [], reruns: 0 },
    todoNudges: 0,
    target: FRESH_TARGET,
    transition: 'opened',
    asked: null,
    ...(start.agents ? { agents: start.agents } : {}),
  };
}

/** What a late yes allowed is made before anything else; the model is asked when its outcome is known. */
function openingPhase(carried: CarriedCall | null): Phase {
  if (!carried) return { kind: 'ready' };
  return { kind: 'carried', assistant: carried.assistant, call: { ref: carried.ref, state: 'queued' } };
}

/** The calls that may run now, or have come back. */
export function callsOf(phase: Phase): readonly BatchCall[] {
  switch (phase.kind) {
    case 'batch':
      return phase.calls;
    case 'carried':
      return [phase.call];
    default:
      return [];
  }
}

/** The same state, where each of those calls is what `change` makes of it. */
export function withCalls(state: TurnState, change: (call: BatchCall) => BatchCall): TurnState {
  const { phase } = state;
  switch (phase.kind) {
    case 'batch':
      return { ...state, phase: { ...phase, calls: phase.calls.map(change) } };
    case 'carried':
      return { ...state, phase: { ...phase, call: change(phase.call) } };
    default:
      return state;
  }
}

/** The message whose calls those are. */
export function assistantOf({ phase, head }: TurnState): string {
  return phase.kind === 'carried' ? phase.assistant : head;
}

/** The phase as an end names it. */
export function endPhaseOf(phase: Phase): EndPhase {
  switch (phase.kind) {
    case 'ready':
      return 'sampling';
    case 'carried':
      return onlyWaits([phase.call]) ? 'waiting' : 'tools';
    case 'compacting':
    case 'compaction_resting':
      return 'compacting';
    case 'resting':
      return 'resting';
    case 'batch':
      if (phase.calls.some((call) => call.state === 'asking')) return 'gate';
      return onlyWaits(phase.calls) ? 'waiting' : 'tools';
    case 'stop_gate':
    case 'ending':
      return 'ending';
  }
}

/** Nobody works: the clock of running time stands still. */
export function isWaiting(phase: Phase): boolean {
  if (phase.kind === 'resting' || phase.kind === 'compaction_resting') return true;
  const calls = callsOf(phase);
  return calls.some((call) => call.state === 'asking') || onlyWaits(calls);
}

function onlyWaits(calls: readonly BatchCall[]): boolean {
  const waits = calls.some((call) => call.state === 'waiting' || call.state === 'in_doubt');
  return waits && !calls.some((call) => call.state === 'running');
}
