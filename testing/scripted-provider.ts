import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { type ChatRequest, pairingFault } from './chat-request.ts';
import { playReply } from './play-reply.ts';
import { gate, type Reply } from './reply.ts';
import { asChatRequest, type ResponseRequest, responseFault } from './response-request.ts';
import type { WireName } from './wire.ts';

/** Answers from a request: its conversation in the words of chat completions, whatever its wire, and its headers. */
type Rule = (request: ChatRequest, headers: IncomingHttpHeaders) => Reply;

/** A reply, or one that depends on the request. */
export type ScriptedReply = Reply | Rule;

export interface RecordedRequest {
  readonly wire: WireName;
  readonly headers: IncomingHttpHeaders;
  /** In the words of chat completions, whatever the wire. */
  readonly body: ChatRequest;
  /** As it came. */
  readonly sent: unknown;
  /** ms since the epoch. */
  readonly openedAt: number;
  /** When the client closed the connection before the answer was complete, ms since the epoch. */
  closedAt: number | null;
  /** Resolves with the answer complete, cut by the script, or the client gone. */
  readonly settled: Promise<void>;
}

export interface ScriptedProviderOptions {
  /** Answers in order; a request past the last one is a fault. */
  readonly script?: readonly ScriptedReply[];
  /** Instead of a script: the answer follows from the conversation alone, so a repeated request is legal. */
  readonly rules?: Rule;
  /** 0, the default, takes any free port. */
  readonly port?: number;
  /** Each request must bring an `Idempotency-Key`, and the same key always the same bytes. */
  readonly expectKey?: boolean;
  /** Refuse a conversation in which a tool call and its result are not a pair; on by default. */
  readonly strictPairs?: boolean;
  /** False: messages of a request are dropped once it was answered, for conversations that are very long. */
  readonly keepBodies?: boolean;
}

export interface ScriptedProvider {
  /** Ends in `/v1`. */
  readonly baseUrl: string;
  readonly requests: readonly RecordedRequest[];
  /** Sentences about requests that no provider would have expected. */
  readonly faults: readonly string[];
  push(...replies: readonly ScriptedReply[]): void;
  /** Resolves with request `n`, counted from 0, as soon as it has arrived. */
  arrived(n: number): Promise<RecordedRequest>;
  /** @throws Error one sentence, when a request was unexpected or a reply is left over. */
  assertDone(): void;
  close(): Promise<void>;
}

/**
 * A strict OpenAI-compatible provider on real HTTP, for chat completions and the Responses API: an unexpected request
 * fails, so does a reply left over. One script serves both.
 */
export async function startScriptedProvider(options: ScriptedProviderOptions = {}): Promise<ScriptedProvider> {
  const queue = [...(options.script ?? [])];
  const requests: RecordedRequest[] = [];
  const faults: string[] = [];
  const waiting: { readonly n: number; readonly resolve: (request: RecordedRequest) => void }[] = [];
  const keys = new Map<string, string>();

  const server = createServer((incoming, response) => {
    answer(incoming, response).catch((error: unknown) => refuse(response, 500, String(error)));
  });

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const route = `${incoming.method} ${new URL(incoming.url ?? '/', 'http://provider').pathname}`;
    if (route === 'GET /v1/models') return json(response, 200, MODELS);
    if (route === 'GET /requests') return json(response, 200, { requests: requests.map(visible), faults });
    const text = await readAll(incoming);
    const wire = WIRES[route];
    if (!wire) return refuse(response, 404, `${route} is not scripted`);
    const { request, settle } = record(incoming, JSON.parse(text), wire);
    const fault = faultOf(request, text);
    const scripted = fault ? null : (options.rules ?? queue.shift());
    try {
      if (!scripted) return refuse(response, fault ? 400 : 500, fault ?? 'it came after the last scripted reply');
      const reply = typeof scripted === 'function' ? scripted(request.body, incoming.headers) : scripted;
      request.closedAt = await playReply(reply, request.body, response, wire);
    } finally {
      if (options.keepBodies === false) Object.assign(request, { body: { ...request.body, messages: [] } });
      settle();
    }
  }

  function record({ headers }: IncomingMessage, sent: unknown, wire: WireName) {
    const { opened: settled, open } = gate();
    const body = wire === 'chat' ? (sent as ChatRequest) : asChatRequest(sent as ResponseRequest);
    const request: RecordedRequest = { wire, headers, body, sent, openedAt: Date.now(), closedAt: null, settled };
    requests.push(request);
    for (const waiter of waiting) if (waiter.n === requests.length - 1) waiter.resolve(request);
    return { request, settle: open };
  }

  function faultOf(request: RecordedRequest, text: string): string | null {
    const pairing = options.strictPairs === false ? null : pairingFault(request.body.messages);
    const other = request.wire === 'responses' ? responseFault(request.sent as ResponseRequest) : null;
    return pairing ?? other ?? (options.expectKey ? keyFault(keys, request.headers['idempotency-key'], text) : null);
  }

  function refuse(response: ServerResponse, status: number, why: string): void {
    faults.push(`request ${requests.length}: ${why}`);
    if (response.headersSent) return void response.socket?.destroy();
    const error = { message: `scripted provider: ${why}`, type: 'invalid_request_error', code: 'unscripted' };
    json(response, status, { error }, { 'x-should-retry': 'false' });
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    faults,
    push: (...replies) => void queue.push(...replies),
    arrived: (n) => {
      const there = requests[n];
      return there ? Promise.resolve(there) : new Promise((resolve) => waiting.push({ n, resolve }));
    },
    assertDone: () => assertDone(faults, queue.length),
    close: () => stop(server),
  };
}

const WIRES: Readonly<Record<string, WireName>> = {
  'POST /v1/chat/completions': 'chat',
  'POST /v1/responses': 'responses',
};

const MODELS = { object: 'list', data: [{ id: 'scripted', object: 'model', created: 0, owned_by: 'pawl' }] };

function keyFault(keys: Map<string, string>, key: string | string[] | undefined, text: string): string | null {
  if (typeof key !== 'string' || key === '') return 'it has no Idempotency-Key';
  const before = keys.get(key) ?? text;
  keys.set(key, before);
  return before === text ? null : 'it has the Idempotency-Key of a request with another body';
}

function assertDone(faults: readonly string[], left: number): void {
  const parts = [
    ...faults,
    ...(left > 0 ? [`${left} scripted ${left === 1 ? 'reply was' : 'replies were'} never asked for`] : []),
  ];
  if (parts.length > 0) throw new Error(`The scripted provider was not used as scripted: ${parts.join('; ')}.`);
}

function visible({ wire, headers, body, openedAt, closedAt }: RecordedRequest) {
  const { authorization: _hidden, ...shown } = headers;
  return { wire, headers: shown, body, openedAt, closedAt };
}

async function readAll(incoming: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part as Buffer);
  return Buffer.concat(parts).toString('utf8');
}

function json(response: ServerResponse, status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

async function stop(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeAllConnections();
  await closed;
}
