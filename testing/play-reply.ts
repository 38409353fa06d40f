import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ChatRequest } from './chat-request.ts';
import type { Pace, Reply, ReplyContent } from './reply.ts';
import { ResponseFrames, wholeResponse } from './response-frames.ts';
import { C, type ChunkPayload, D, type Frame, F, frameText, PING, T, U, type WireName } from './wire.ts';

type Message = ReplyContent & { kind: 'message' };

/**
 * Writes one answer; resolves when it was sent or cut, or the client went away.
 * @returns when the client closed the connection before the answer was complete (ms since the epoch), or null.
 */
export async function playReply(
  reply: Reply,
  request: ChatRequest,
  response: ServerResponse,
  wire: WireName,
): Promise<number | null> {
  const gone = new AbortController();
  let closedAt: number | null = null;
  const closed = new Promise<void>((resolve) => {
    response.once('close', () => {
      if (!response.writableFinished) closedAt = Date.now();
      gone.abort();
      resolve();
    });
  });
  try {
    const how = await play(reply, request, { response, wire, gone: gone.signal });
    await closed;
    return how === 'cut' ? null : closedAt;
  } catch (error) {
    if (closedAt === null) throw error;
    return closedAt;
  }
}

async function play(
  reply: Reply,
  request: ChatRequest,
  { response, wire, gone }: { response: ServerResponse; wire: WireName; gone: AbortSignal },
): Promise<'sent' | 'cut'> {
  const { content, pace } = reply;
  if ((pace.holdAt ?? 'headers') === 'headers') await held(pace, gone);
  if (pace.beforeHeadersMs) await sleep(pace.beforeHeadersMs, undefined, { signal: gone });
  if (content.kind === 'status') return sendBody(response, content.status, content.body, content.headers);
  if (request.stream !== true) {
    if (content.kind === 'message') {
      const whole =
        wire === 'chat' ? completion(content, request) : wholeResponse(messageFrames(content, request, pace));
      return sendBody(response, 200, whole, {});
    }
    throw new Error('chunks() can only answer a request with stream: true');
  }
  startStream(response);
  const line: Line = { response, gone, pace, words: wordsOf(wire, content.kind), inFrame: false };
  const comment = () => !line.inFrame && response.write(PING);
  const comments = pace.commentsEveryMs ? setInterval(comment, pace.commentsEveryMs) : undefined;
  try {
    return await sendFrames(framesOf(content, request, pace), line);
  } finally {
    clearInterval(comments);
  }
}

/** A response being streamed. Comments stay out while a frame is half written. */
interface Line {
  readonly response: ServerResponse;
  readonly gone: AbortSignal;
  readonly pace: Pace;
  /** A frame as the wire says it. */
  readonly words: (frame: Frame) => string[];
  inFrame: boolean;
}

function wordsOf(wire: WireName, kind: 'message' | 'chunks'): Line['words'] {
  const translator = new ResponseFrames(kind === 'message' ? 'whole' : 'deltas');
  return (frame) => {
    if (typeof frame === 'object' && 'cut' in frame) return [];
    return wire === 'chat' ? [frameText(frame)] : translator.translate(frame);
  };
}

function startStream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  response.socket?.setNoDelay(true);
  response.flushHeaders();
}

async function sendFrames(frames: readonly Frame[], line: Line): Promise<'sent' | 'cut'> {
  const { response, gone, pace } = line;
  for (let sent = 0; pace.endless || sent < frames.length; sent += 1) {
    if (pace.holdAt === sent) await held(pace, gone);
    const frame = frames[sent % frames.length] ?? PING;
    if (pace.cutAfterChunks === sent || (typeof frame === 'object' && 'cut' in frame)) return cut(response);
    const pauseMs = pace.betweenChunksMs ?? (pace.endless ? 5 : 0);
    if (pauseMs > 0 && sent > 0) await sleep(pauseMs, undefined, { signal: gone });
    for (const words of line.words(frame)) await write(line, words);
  }
  if (typeof pace.holdAt === 'number' && pace.holdAt >= frames.length) await held(pace, gone);
  if (pace.cutAfterChunks !== undefined) return cut(response);
  response.end();
  return 'sent';
}

async function held(pace: Pace, gone: AbortSignal): Promise<void> {
  if (!pace.hold) return;
  pace.hold.reach();
  const left = new Promise<never>((_, reject) => {
    gone.addEventListener('abort', () => reject(new Error('the client went away')), { once: true });
  });
  gone.throwIfAborted();
  await Promise.race([pace.hold.released, left]);
}

async function write(line: Line, text: string): Promise<void> {
  const bytes = Buffer.from(text);
  const parts = line.pace.byteByByte ? Array.from(bytes, (_, n) => bytes.subarray(n, n + 1)) : [bytes];
  line.inFrame = true;
  for (const part of parts) {
    line.gone.throwIfAborted();
    await new Promise<void>((resolve) => line.response.write(part, () => resolve()));
    if (line.pace.byteByByte) await new Promise((resolve) => setImmediate(resolve));
  }
  line.inFrame = false;
}

function cut(response: ServerResponse): 'cut' {
  response.socket?.destroy();
  return 'cut';
}

function sendBody(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>>,
): 'sent' {
  const isText = typeof body === 'string';
  const contentType = isText ? 'text/plain; charset=utf-8' : 'application/json';
  response.writeHead(status, { 'content-type': contentType, ...headers });
  response.end(isText ? body : JSON.stringify(body));
  return 'sent';
}

function framesOf(content: Exclude<ReplyContent, { kind: 'status' }>, request: ChatRequest, pace: Pace): Frame[] {
  return content.kind === 'chunks' ? [...content.frames] : messageFrames(content, request, pace);
}

function messageFrames(content: Message, request: ChatRequest, pace: Pace): (ChunkPayload | string)[] {
  const words = content.text.split(/(?<=\s)/).filter((word) => word !== '');
  const said = [
    ...(content.reasoning ? [C({ reasoning_content: content.reasoning })] : []),
    ...words.map((word) => C({ content: word })),
    ...wireCalls(content, request).map((call, n) => T(n, call.id, call.function.name, call.function.arguments)),
  ];
  if (pace.endless) return said;
  const { prompt, completion: output } = content.usage;
  const usage = request.stream_options?.include_usage ? [U(prompt, output)] : [];
  return [C({ role: 'assistant' }), ...said, F(content.finish), ...usage, D];
}

function completion(content: Message, request: ChatRequest): unknown {
  const calls = wireCalls(content, request);
  const message = {
    role: 'assistant',
    content: content.text || null,
    ...(content.reasoning ? { reasoning_content: content.reasoning } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
  return {
    id: 'chatcmpl-scripted',
    object: 'chat.completion',
    created: 0,
    model: request.model,
    choices: [{ index: 0, message, finish_reason: content.finish }],
    usage: U(content.usage.prompt, content.usage.completion).usage,
  };
}

function wireCalls(content: Message, request: ChatRequest) {
  return content.calls.map((call, n) => ({
    id: call.id ?? `call_${request.messages.length}_${n}`,
    type: 'function',
    function: {
      name: call.name,
      arguments: typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments ?? {}),
    },
  }));
}
