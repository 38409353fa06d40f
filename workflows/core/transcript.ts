import type { InputKind } from './inputs.ts';
import type { Reminder } from './turn-state.ts';

/** One tool call as the model wrote it. `arguments` is the raw text, blank stands for `{}`. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** Everything a transcript can hold. The hash of a message covers its parent, its kind and its body. */
export type Message =
  | {
      readonly kind: 'user';
      readonly text: string;
      readonly input: string;
      readonly source: InputKind;
      /** The ended turn whose work goes on: what it was for, it still is for. */
      readonly continues?: string;
    }
  | {
      readonly kind: 'assistant';
      readonly text: string;
      readonly reasoning: string;
      readonly calls: readonly ToolCall[];
      /** Who wrote it: two providers may have models of one name. */
      readonly provider: string;
      readonly model: string;
      /** Fields the provider may want back untouched, such as signatures. */
      readonly extra: Readonly<Record<string, unknown>>;
      /** The stream was cut: by a cancel or a message that could not wait. */
      readonly cut: boolean;
      /** Tokens of the request and this reply together, as the provider counted; absent where it never told. */
      readonly measuredTokens?: number;
    }
  | {
      readonly kind: 'tool_result';
      readonly ordinal: number;
      readonly callId: string;
      readonly tool: string;
      readonly text: string;
      readonly isError: boolean;
      /** Hash of the blob that holds the whole output, where `text` is only head and tail. */
      readonly blob: string | null;
    }
  | { readonly kind: 'directive'; readonly text: string; readonly goal: string; readonly round: string }
  | { readonly kind: 'reminder'; readonly code: Reminder; readonly text: string }
  | { readonly kind: 'interruption'; readonly text: string; readonly turn: string }
  | {
      /** Stands for everything before it but the newest messages; the chain behind it stays as it is. */
      readonly kind: 'compaction';
      readonly text: string;
      /** Depth of the oldest message that is still shown as it is. */
      readonly keptFrom: number;
      /** Carried from one compaction to the next, word for word. */
      readonly objective: string;
      readonly todos: readonly string[];
    };

export type MessageKind = Message['kind'];
