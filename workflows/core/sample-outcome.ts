import type { AgentsCount } from './agents.ts';
import type { CallRef } from './tools.ts';

/** Tokens of one provider request. `complete` is false where the provider never told, or not all. */
export interface TokenUsage {
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
  readonly complete: boolean;
}

/** Tokens and what they cost, in micro-USD (millionths of a US dollar). */
export interface Usage extends TokenUsage {
  /** What is known to have been spent; null where there is no price. */
  readonly microUsd: number | null;
  /** What requests whose usage is not known may have cost beyond that: a USD budget counts it as spent. */
  readonly heldMicroUsd: number;
}

export const NO_TOKENS: TokenUsage = {
  inputTokens: 0,
  cachedTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  complete: true,
};

export const NO_USAGE: Usage = { ...NO_TOKENS, microUsd: 0, heldMicroUsd: 0 };

/** Why the model's stream stopped, as far as the label can be believed. */
export type Finish = 'stop' | 'tool_calls' | 'length' | 'content_filter';

/** A request that brought no usable reply: a value for the core, never an exception. */
export type ProviderFailure =
  | { readonly kind: 'rate_limited'; readonly afterMs: number | null; readonly quota: boolean }
  | { readonly kind: 'overloaded'; readonly status: number; readonly afterMs: number | null }
  | { readonly kind: 'server_error'; readonly status: number; readonly final: boolean }
  | { readonly kind: 'transport'; readonly cause: 'connect' | 'reset' | 'cut' | 'malformed' }
  | { readonly kind: 'stalled' }
  /** The model repeated itself without end, and the attempt was stopped. */
  | { readonly kind: 'doom_loop' }
  | { readonly kind: 'auth'; readonly status: number }
  /** `windowTokens`: the window's real size, where the provider names it. */
  | { readonly kind: 'overflow'; readonly windowTokens?: number }
  | { readonly kind: 'too_large' }
  | { readonly kind: 'invalid_request'; readonly status: number };

/** What one `sample` activity came back with. The head is the chain after the appends (and the reply). */
export type SampleOutcome = { readonly head: string; readonly agents?: AgentsCount } & (
  | {
      readonly kind: 'reply';
      readonly finish: Finish;
      readonly empty: boolean;
      readonly calls: readonly CallRef[];
      readonly usage: Usage;
      /** There are hooks that want to be asked before the turn ends on this reply. */
      readonly stopGate?: true;
      /** Where the answer has to fit a schema, and this may be it. */
      readonly structured?: {
        readonly verdict: 'valid' | 'invalid' | 'cut';
        /** Results of calls that were taken out, which the next commit appends. */
        readonly results: number;
      };
      /** Unfinished todos, where somebody asks. */
      readonly openTodos?: number;
    }
  | { readonly kind: 'needs_compaction'; readonly estimateTokens: number }
  | { readonly kind: 'no_room'; readonly estimateTokens: number }
  | { readonly kind: 'attempts_lost'; readonly attempts: number }
  | { readonly kind: 'cut'; readonly usage: Usage }
  | (ProviderFailure & { readonly usage: Usage })
);

export type Reply = SampleOutcome & { readonly kind: 'reply' };
