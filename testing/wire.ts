/**
 * One chunk of a stream, raw bytes of it, or the place where the socket is cut. Chunks are written in the words of
 * chat completions and translated for the Responses API; an event belongs to the Responses API alone.
 */
export type Frame = string | { readonly cut: true } | ChunkPayload | EventPayload;

/** Which of OpenAI's protocols is spoken. */
export type WireName = 'chat' | 'responses';

export interface EventPayload {
  readonly type: string;
  readonly [field: string]: unknown;
}

export interface ChunkPayload {
  readonly choices?: readonly unknown[];
  readonly usage?: unknown;
  readonly error?: unknown;
}

/** Stands for a key that the provider leaves out. */
const ABSENT = '-';

/** A chunk with this delta. */
export function C(delta: Readonly<Record<string, unknown>>): ChunkPayload {
  return { choices: [{ index: 0, delta, finish_reason: null }] };
}

/** A chunk with a piece of a tool call; `'-'` leaves the key out. */
export function T(index: number | '-', id: string, name: string, args: string): ChunkPayload {
  const call = {
    ...(index === ABSENT ? {} : { index }),
    ...(id === ABSENT ? {} : { id }),
    type: 'function',
    function: { ...(name === ABSENT ? {} : { name }), ...(args === ABSENT ? {} : { arguments: args }) },
  };
  return C({ tool_calls: [call] });
}

/** A chunk with a finish reason and an empty delta. */
export function F(reason: string): ChunkPayload {
  return { choices: [{ index: 0, delta: {}, finish_reason: reason }] };
}

/** The usage chunk: prompt and completion tokens. */
export function U(prompt: number, completion: number): ChunkPayload {
  const usage = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
  return { choices: [], usage };
}

/** An event of the Responses API, as it is. */
export function R(type: string, fields: Readonly<Record<string, unknown>> = {}): EventPayload {
  return { ...fields, type };
}

/** The end marker; for the Responses API, its last event. */
export const D = 'data: [DONE]\n\n';

/** The socket is closed here. */
export const X: Frame = { cut: true };

/** A comment line: it keeps a connection alive and says nothing. */
export const PING = ': ping\n\n';

export function frameText(frame: string | ChunkPayload | EventPayload): string {
  if (typeof frame === 'string') return frame;
  if ('type' in frame) throw new Error(`chat completions have no event ${frame.type}`);
  return `data: ${JSON.stringify(frame)}\n\n`;
}
