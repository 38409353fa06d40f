import type { AgentsCount } from './agents.ts';
import type { CallRef, CallStatus } from './tools.ts';

/** What the gate says of one call, on its final arguments. */
export type GateVerdict =
  | { readonly kind: 'run'; readonly ref: CallRef }
  /** Data for the model: only this call, and the turn goes on. */
  | { readonly kind: 'denied' }
  | { readonly kind: 'ask'; readonly approval: string; readonly untilMs: number };

/** How an approval was answered; the row in the store is the one truth, this is what follows from it. */
export type Decision =
  | { readonly kind: 'approved'; readonly ref: CallRef }
  | { readonly kind: 'rejected' }
  | { readonly kind: 'cancelled' }
  /** A follow-up message was typed instead of an answer; `input` is its id. */
  | { readonly kind: 'message'; readonly input: string }
  /** Data for the model: nobody answered in time, or plan and rules have changed since. */
  | { readonly kind: 'denied' }
  /** Nobody answered in time, and the agent is to wait for a person. */
  | { readonly kind: 'expired' }
  /** Nobody has answered yet. */
  | { readonly kind: 'pending'; readonly untilMs: number };

/** What the hooks that are asked before an end said together. */
export type StopVerdict =
  | { readonly kind: 'pass' }
  /** `head`: the chain with the reason behind it, as a message to the model. */
  | { readonly kind: 'block'; readonly head: string }
  /** `hook`: the name of the hook that wants an end now. */
  | { readonly kind: 'stop'; readonly hook: string };

/** How a waiting call stands: its row in the store is the one truth. */
export type WaitLook = { readonly agents?: AgentsCount } & (
  | { readonly kind: 'waiting'; readonly wait: string; readonly untilMs: number }
  /** `stillRuns`: its time is over, and what it waits for is not. */
  | { readonly kind: 'over'; readonly status: CallStatus; readonly stillRuns?: true }
);

/** Why the rest of a batch was stopped: a person's word, or nobody's in time. What the world does is never one. */
export interface Fuse {
  readonly cause: 'rejected' | 'cancelled' | 'message' | 'expired';
  readonly approval: string;
}
