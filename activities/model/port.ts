import type { Patience } from '../../workflows/core/policy.ts';
import type { Finish, ProviderFailure, TokenUsage } from '../../workflows/core/sample-outcome.ts';
import type { Message, ToolCall } from '../../workflows/core/transcript.ts';
import type { StoredTool } from '../store/schema.ts';

/** What a model is shown: messages of the transcript, and lines of ours that stand for some of them. */
export type Shown = Message | { readonly kind: 'projection'; readonly text: string };

/** One request to a provider, in the transcript's own terms. */
export interface ModelRequest {
  /** Its name in the config. */
  readonly provider: string;
  readonly model: string;
  readonly instructions: string;
  /** Oldest first; every call has its result. */
  readonly messages: readonly Shown[];
  readonly tools: readonly StoredTool[];
  /** Cap on the output, in tokens. */
  readonly outputTokens: number;
  /** The whole reply is to be JSON of this shape, said in the provider's own way; see `nativeFormat`. */
  readonly answer?: AnswerFormat;
  /** How long it may take. */
  readonly clocks: Clocks;
  /** Stop a reply that repeats itself without end. */
  readonly watchRepetition: boolean;
  /** Sent as the `Idempotency-Key` header: attempts that send the same bytes share it. */
  readonly idempotencyKey: string;
}

export type Clocks = Pick<Patience, 'stallMs' | 'totalMs' | 'usageWaitMs'>;

export interface AnswerFormat {
  /** Letters, digits, `_` and `-`, at most 64. */
  readonly name: string;
  readonly schema: Readonly<Record<string, unknown>>;
}

export interface ModelListener {
  /** Aborting closes the connection to the provider at once. */
  readonly signal: AbortSignal;
  onDelta(channel: 'text' | 'reasoning', chunk: string): void;
}

/** What the model said before the stream ended, or was cut. */
export interface ModelReply {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly ToolCall[];
  /** Fields of the assistant message that the provider may want back. */
  readonly extra: Readonly<Record<string, unknown>>;
}

export type ModelResult =
  | ({ readonly kind: 'reply'; readonly finish: Finish; readonly usage: TokenUsage } & ModelReply)
  | ({ readonly kind: 'cut'; readonly usage: TokenUsage } & ModelReply)
  | (ProviderFailure & {
      readonly usage: TokenUsage;
      /** Error class, HTTP status and a short redacted first line, at most 200 characters. */
      readonly note: string;
    });

/** One call of `sample` is one HTTP request. Never throws for anything a provider does. */
export interface ModelPort {
  sample(request: ModelRequest, listener: ModelListener): Promise<ModelResult>;
}
