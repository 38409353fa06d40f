import type OpenAI from 'openai';
import type { Finish, TokenUsage } from '../../workflows/core/sample-outcome.ts';
import type { CallDrafts } from './call-fragments.ts';
import type { JsonObject } from './json.ts';
import type { ModelReply } from './port.ts';

/** An assistant message while it streams. */
export interface Draft {
  readonly text: string;
  readonly reasoning: string;
  readonly refused: boolean;
  readonly drafts: CallDrafts;
  readonly extra: JsonObject;
  /** Why the provider says that it stopped; null while it has not said so. */
  readonly finish: string | null;
  /** Saw the end marker. */
  readonly done: boolean;
  /** The last report that was not empty. */
  readonly usage: TokenUsage | null;
}

/** What one frame did: the draft after it, and the text it brought; or the error object in it. */
export type Step<D extends Draft> =
  | { readonly kind: 'grown'; readonly draft: D; readonly text: string; readonly reasoning: string }
  | { readonly kind: 'failed'; readonly draft: D; readonly error: unknown };

export type Conclusion =
  | ({ readonly kind: 'reply'; readonly finish: Finish; readonly usage: TokenUsage } & ModelReply)
  /** The stream ended before the provider said that it was over: nothing in it may be used. */
  | { readonly kind: 'cut'; readonly usage: TokenUsage }
  /** Which fragment belongs to which call cannot be told: nothing of it may run. */
  | { readonly kind: 'malformed'; readonly usage: TokenUsage }
  /** The provider's own finish reason says that it failed. */
  | { readonly kind: 'failed'; readonly finish: string; readonly usage: TokenUsage };

/** One protocol: how a request is sent, and how the frames of its answer are read. */
export interface Dialect<D extends Draft> {
  readonly empty: D;
  send(client: OpenAI, options: OpenAI.RequestOptions): Promise<Response>;
  /** Adds one parsed frame. One that says nothing, such as a gateway's ping, gives the same draft back. */
  accumulate(draft: D, frame: JsonObject, event: string): Step<D>;
  /** The stream said `[DONE]`. */
  marked(draft: D): D;
  conclude(draft: D): Conclusion;
  /** The draft as a message, whole or not. */
  replyOf(draft: D): ModelReply;
}
