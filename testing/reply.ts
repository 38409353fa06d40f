import type { Frame } from './wire.ts';

/** One answer of the scripted provider: what it says, and at what pace. */
export interface Reply {
  readonly content: ReplyContent;
  readonly pace: Pace;
}

export type ReplyContent =
  | {
      readonly kind: 'message';
      readonly text: string;
      readonly reasoning: string;
      readonly calls: readonly ScriptedCall[];
      readonly finish: string;
      readonly usage: TokenCount;
    }
  | { readonly kind: 'chunks'; readonly frames: readonly Frame[] }
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly body: unknown;
      readonly headers: Readonly<Record<string, string>>;
    };

export interface ScriptedCall {
  readonly name: string;
  /** Raw text, or a value that is sent as JSON. */
  readonly arguments: unknown;
  /** Derived from the conversation when absent, so a repeated request gets the same id. */
  readonly id?: string;
}

export interface TokenCount {
  readonly prompt: number;
  readonly completion: number;
}

/** How an answer goes over the wire. Chunks are counted from 0. */
export interface Pace {
  readonly beforeHeadersMs?: number;
  readonly betweenChunksMs?: number;
  /** Waits here until released. */
  readonly hold?: Hold;
  /** Before the headers (default) or before the chunk with this number. */
  readonly holdAt?: 'headers' | number;
  /** Closes the socket when this many chunks were sent. */
  readonly cutAfterChunks?: number;
  readonly byteByByte?: boolean;
  /** Sends a comment line this often, from the headers to the end. */
  readonly commentsEveryMs?: number;
  /** Sends the chunks again and again until the client goes away. */
  readonly endless?: boolean;
}

export interface MessageOptions {
  readonly text?: string;
  readonly reasoning?: string;
  readonly finish?: string;
  readonly usage?: TokenCount;
}

const DEFAULT_USAGE: TokenCount = { prompt: 100, completion: 10 };

/** A final answer. */
export function say(text: string, options: Omit<MessageOptions, 'text'> = {}): Reply {
  return message([], { finish: 'stop', ...options, text });
}

/** An assistant message with tool calls. */
export function callTools(calls: readonly ScriptedCall[], options: MessageOptions = {}): Reply {
  return message(calls, { finish: 'tool_calls', ...options });
}

function message(calls: readonly ScriptedCall[], options: MessageOptions & { finish: string }): Reply {
  const { text = '', reasoning = '', finish, usage = DEFAULT_USAGE } = options;
  return { content: { kind: 'message', text, reasoning, calls, finish, usage }, pace: {} };
}

/** A stream written frame by frame: nothing is added, neither usage nor an end marker. */
export function chunks(frames: readonly Frame[]): Reply {
  return { content: { kind: 'chunks', frames }, pace: {} };
}

/** An answer without a stream: an error status, or anything else. A string body is sent as it is. */
export function status(code: number, body: unknown = '', headers: Readonly<Record<string, string>> = {}): Reply {
  return { content: { kind: 'status', status: code, body, headers }, pace: {} };
}

/** The same answer at another pace. */
export function paced(reply: Reply, pace: Pace): Reply {
  return { ...reply, pace: { ...reply.pace, ...pace } };
}

/** A place where the provider stops until the test says go. */
export interface Hold {
  /** Resolves when the provider has come to this place. */
  readonly reached: Promise<void>;
  readonly released: Promise<void>;
  reach(): void;
  release(): void;
}

export function hold(): Hold {
  const reached = gate();
  const released = gate();
  return { reached: reached.opened, released: released.opened, reach: reached.open, release: released.open };
}

/** A promise and the function that resolves it. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}
