import type { AgentMode } from './agents.ts';
import type { CompactionCause } from './compact-outcome.ts';
import type { Decider, End, EndPhase, Signal } from './ends.ts';
import type { StopVerdict } from './gate.ts';
import type { GoalJournalEvent } from './goal/goal-journal.ts';
import type { InputKind } from './inputs.ts';
import type { ProviderFailure, Usage } from './sample-outcome.ts';
import type { SessionEvent } from './session-events.ts';
import type { CallStatus, Effect } from './tools.ts';
import type { Transition } from './transition.ts';

/** Which of the five layers an event belongs to; each ends on its own. */
export type Layer = 'stream' | 'batch' | 'turn' | 'driver' | 'goal';

interface EndRow {
  readonly reason: string;
  readonly detail: string | null;
  readonly decidedBy: Decider;
  readonly signal: string;
}

export type StreamEnd =
  | 'stop'
  | 'tool_calls'
  | 'length'
  | 'content_filter'
  | 'cancelled'
  | 'stalled'
  | 'discarded'
  | 'error'
  | 'lost';
export type BatchEnd = 'all_returned' | 'fused' | 'cancelled';
export type DriverEnd = 'queue_empty' | 'closed';
export type CancelAnswer = 'took' | 'already_ended' | 'second';

/**
 * The vocabulary of the event table, the event stream, the page and the tests.
 * Bodies hold ids, codes, counts and hashes; text stays in the message that `message` names.
 */
export type JournalEvent =
  | { readonly kind: 'job.submitted'; readonly layer: 'driver'; readonly job: string; readonly input: string }
  | {
      readonly kind: 'input.accepted';
      readonly layer: 'driver';
      readonly input: string;
      readonly source: InputKind;
      /** Who sent it. */
      readonly by: string | null;
    }
  | {
      readonly kind: 'input.dropped';
      readonly layer: 'driver';
      readonly input: string;
      readonly status: string;
      /** Who asked, where a person did. */
      readonly by: string | null;
      /** What they said, or a hook. */
      readonly why: string | null;
    }
  /** The job of a turn that a machine ended goes on by itself: the n-th time of `of`. */
  | {
      readonly kind: 'job.continues';
      readonly layer: 'driver';
      readonly input: string;
      readonly n: number;
      readonly of: number;
    }
  | { readonly kind: 'plan.set'; readonly layer: 'driver'; readonly plan: boolean; readonly by: string | null }
  | SessionEvent
  | { readonly kind: 'turn.opened'; readonly layer: 'turn'; readonly n: number; readonly input: string }
  | { readonly kind: 'input.joined'; readonly layer: 'turn'; readonly input: string; readonly message: string }
  | {
      readonly kind: 'sample.started';
      readonly layer: 'stream';
      readonly step: number;
      readonly attempt: string;
      readonly transition: Transition;
      readonly model: string;
    }
  | {
      readonly kind: 'model.switched';
      readonly layer: 'turn';
      readonly from: string;
      readonly to: string;
      readonly cause: 'overloaded';
    }
  | ({
      readonly kind: 'stream.ended';
      readonly layer: 'stream';
      readonly step: number;
      readonly attempt: string;
      readonly reason: StreamEnd;
      readonly failure: ProviderFailure['kind'] | null;
      /** Error class, HTTP status and a short redacted first line; never more. */
      readonly note: string | null;
      readonly message: string | null;
      readonly usage: Usage | null;
    } & EndRow)
  | {
      /** The stream of a summary: it ends with a `stream.ended` of its attempt. */
      readonly kind: 'compaction.started';
      readonly layer: 'stream';
      readonly step: number;
      readonly attempt: string;
      readonly cause: CompactionCause;
      readonly model: string;
    }
  | {
      readonly kind: 'context.compacted';
      readonly layer: 'turn';
      readonly step: number;
      /** The summary. */
      readonly message: string;
      /** Messages that it stands for, and newest ones that stay. */
      readonly replaced: number;
      readonly kept: number;
      readonly beforeTokens: number;
      readonly afterTokens: number;
    }
  | {
      readonly kind: 'call.requested';
      readonly layer: 'batch';
      readonly ordinal: number;
      readonly tool: string;
      readonly effect: Effect;
      readonly key: string;
    }
  | {
      readonly kind: 'approval.opened';
      readonly layer: 'batch';
      readonly approval: string;
      readonly key: string;
      readonly tool: string;
      /** ISO time. */
      readonly expiresAt: string;
    }
  | {
      readonly kind: 'approval.answered';
      readonly layer: 'batch';
      readonly approval: string;
      readonly key: string;
      readonly answer: 'approved' | 'rejected' | 'cancelled' | 'message' | 'expired' | 'happened' | 'absent' | 'again';
      readonly by: string | null;
    }
  | {
      readonly kind: 'event.reported';
      readonly layer: 'driver';
      readonly event: string;
      /** How many waits it ended; 0: it is kept for one that this turn may still open. */
      readonly waits: number;
    }
  | {
      readonly kind: 'call.denied';
      readonly layer: 'batch';
      readonly key: string;
      readonly tool: string;
      readonly by: 'plan' | 'hook' | 'rule' | 'mode' | 'policy' | 'arguments' | 'person';
    }
  | {
      readonly kind: 'hook.failed';
      readonly layer: 'batch' | 'turn' | 'driver';
      readonly hook: string;
      readonly why: string;
    }
  | {
      readonly kind: 'stop_gate.answered';
      readonly layer: 'turn';
      /** `cut`: a message that could not wait came before one. */
      readonly answer: StopVerdict['kind'] | 'cut';
      /** Which ask of the turn it was. */
      readonly asks: number;
      /** The hook that blocked or stopped. */
      readonly hook: string | null;
      /** The message that holds the reason of a block. */
      readonly message: string | null;
      /** What a hook said that wants an end. */
      readonly why: string | null;
    }
  | {
      /** A sub-agent was started. */
      readonly kind: 'agent.started';
      readonly layer: 'batch';
      /** Its session. */
      readonly agent: string;
      readonly name: string;
      /** The call that asked for it. */
      readonly key: string;
      readonly mode: AgentMode;
      /** What it may spend; null: without a limit. */
      readonly leaseTokens: number | null;
      readonly leaseMicroUsd: number | null;
    }
  | ({
      /** A sub-agent has ended; told to the turn that started it. */
      readonly kind: 'agent.ended';
      readonly layer: 'batch';
      readonly agent: string;
      readonly name: string;
      /** How its turn ended. */
      readonly reason: End['reason'];
      /** What it and its own sub-agents spent. */
      readonly usage: Usage;
    } & EndRow)
  | { readonly kind: 'call.started'; readonly layer: 'batch'; readonly key: string; readonly attempt: string }
  | {
      readonly kind: 'call.finished';
      readonly layer: 'batch';
      readonly key: string;
      readonly tool: string;
      readonly status: CallStatus;
      /** Error class, exit code or HTTP status and a short redacted first line; never more. */
      readonly note: string | null;
    }
  | {
      readonly kind: 'effect.settled';
      readonly layer: 'batch';
      readonly key: string;
      readonly as: 'settled_done' | 'settled_absent' | 'unknown' | 'abandoned' | 'late_success';
      readonly by: 'reconcile' | 'person' | 'recovery' | 'attempt';
      /** The person. */
      readonly who?: string;
    }
  /** Nobody knows whether that attempt took effect: a person is asked. */
  | {
      readonly kind: 'effect.asked';
      readonly layer: 'batch';
      readonly approval: string;
      readonly key: string;
      readonly tool: string;
      readonly attempt: string;
      /** How long the turn waits for it, as ISO time; null: it ends over it, and the question stays. */
      readonly expiresAt: string | null;
    }
  /** Nobody answered in time: the turn ends over it, and the question stays. */
  | { readonly kind: 'effect.unanswered'; readonly layer: 'batch'; readonly approval: string; readonly key: string }
  | { readonly kind: 'effect.undoing'; readonly layer: 'batch'; readonly key: string; readonly attempt: string }
  | {
      readonly kind: 'effect.undone';
      readonly layer: 'batch';
      readonly key: string;
      readonly attempt: string;
      readonly as: 'undone' | 'failed' | 'unknown';
      /** Of a failure: its class and a short redacted first line. */
      readonly note: string | null;
    }
  | ({
      readonly kind: 'batch.ended';
      readonly layer: 'batch';
      readonly reason: BatchEnd;
      readonly calls: number;
    } & EndRow)
  | {
      readonly kind: 'attempt.lost';
      readonly layer: 'stream' | 'batch';
      readonly key: string;
      readonly attempt: string;
    }
  | {
      readonly kind: 'attempt.resumed';
      readonly layer: 'stream' | 'batch';
      readonly key: string;
      readonly attempt: string;
    }
  | { readonly kind: 'attempt.discarded'; readonly layer: 'stream'; readonly step: number; readonly attempt: string }
  | {
      readonly kind: 'cancel.requested';
      readonly layer: 'turn';
      readonly id: string;
      readonly decidedBy: Decider;
    }
  | { readonly kind: 'cancel.answered'; readonly layer: 'turn'; readonly id: string; readonly answer: CancelAnswer }
  | { readonly kind: 'turn.reset'; readonly layer: 'turn'; readonly generation: number }
  | { readonly kind: 'head.kept'; readonly layer: 'turn'; readonly head: string }
  | ({
      readonly kind: 'turn.ended';
      readonly layer: 'turn';
      readonly reason: End['reason'];
      readonly detail: End['detail'];
      readonly evidence: Signal;
      readonly phase: EndPhase;
      readonly step: number;
      readonly usage: Usage;
      /** Who asked, where somebody did. */
      readonly by: string | null;
      /** What they said. */
      readonly why: string | null;
      readonly recordedBy: 'turn' | 'recovery';
      readonly head: string;
    } & EndRow)
  | ({ readonly kind: 'driver.ended'; readonly layer: 'driver'; readonly reason: DriverEnd } & EndRow)
  | GoalJournalEvent;

/** An event as the table holds it and the stream sends it. `at` is an ISO time. */
export interface RecordedEvent {
  readonly stream: string;
  readonly seq: number;
  readonly turn: string | null;
  readonly at: string;
  readonly event: JournalEvent;
}
