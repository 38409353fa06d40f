import type { AgentsCount } from './agents.ts';
import type { CompactOutcome } from './compact-outcome.ts';
import type { Span } from './delayed.ts';
import type { End } from './ends.ts';
import type { FaultSource } from './endings.ts';
import type { Decision, GateVerdict, StopVerdict } from './gate.ts';
import type { SampleOutcome } from './sample-outcome.ts';
import type { CallStatus } from './tools.ts';

/** What a turn can hear. `atMs` is ms since the epoch; `away`: when nobody was there to do it. */
export type TurnEvent = { readonly atMs: number; readonly away?: readonly Span[] } & (
  | {
      readonly kind: 'sampled';
      readonly outcome: SampleOutcome;
      /** How many inbox entries the sample's commit took in. */
      readonly drained: number;
      /** In [0, 1): spreads back-offs. */
      readonly dice: number;
    }
  | { readonly kind: 'compacted'; readonly outcome: CompactOutcome; readonly dice: number }
  | { readonly kind: 'gated'; readonly ordinal: number; readonly verdict: GateVerdict }
  | { readonly kind: 'wait_seen'; readonly ordinal: number; readonly wait: string; readonly untilMs: number }
  | { readonly kind: 'agents_counted'; readonly agents: AgentsCount }
  /** Somebody answered an approval, or what a call waits for: look into the store now instead of at its expiry. */
  | { readonly kind: 'answer_arrived'; readonly approval: string }
  | { readonly kind: 'decided'; readonly ordinal: number; readonly decision: Decision }
  | { readonly kind: 'call_started'; readonly ordinal: number }
  | {
      readonly kind: 'call_finished';
      readonly ordinal: number;
      readonly status: CallStatus;
      /** A wait whose time was over before what it waits for. */
      readonly stillRuns?: true;
    }
  /** Nobody knows what became of a call: a person is asked. */
  | { readonly kind: 'outcome_asked'; readonly ordinal: number; readonly approval: string; readonly untilMs: number }
  /** The person's word, or the hour at which it is too late, goes to the call. */
  | { readonly kind: 'outcome_heard'; readonly ordinal: number }
  | { readonly kind: 'batch_returned' }
  | { readonly kind: 'stop_gate_answered'; readonly verdict: StopVerdict }
  /** What a cancel cut was taken back, as far as it could be in time. */
  | { readonly kind: 'undo_over' }
  | { readonly kind: 'rested' }
  /** `urgent`: those of them that can't wait for the next safe point. */
  | { readonly kind: 'inputs_arrived'; readonly inputs: readonly string[]; readonly urgent?: readonly string[] }
  | { readonly kind: 'cancel_requested' }
  /** The turn ends so: whatever still comes back changes nothing any more. */
  | { readonly kind: 'end_decided'; readonly end: End }
  | { readonly kind: 'failed'; readonly type: string; readonly source: FaultSource }
);
