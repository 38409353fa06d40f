import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** How the server answers the next `tools/call`, after it has applied the effect. */
export type Answering =
  | 'json'
  | 'sse'
  /** The socket goes. */
  | 'drop'
  /** A stream begins and ends with nothing in it. */
  | 'empty_stream'
  | 'half_stream'
  | 'session_gone'
  | 'gateway_timeout'
  | 'never'
  | 'unauthorized'
  | 'gateway_closed';

export interface FakeHttp {
  readonly url: string;
  readonly effects: readonly string[];
  /** Sessions that were begun. */
  readonly sessions: readonly string[];
  readonly headers: readonly IncomingMessage['headers'][];
  readonly methods: readonly string[];
  /** The idempotency key of each call. */
  readonly keys: readonly (string | null)[];
  stop(): void;
  answerWith(...next: readonly Answering[]): void;
  forgetSessions(): void;
}

interface Params {
  readonly name: string;
  readonly protocolVersion: string;
  readonly _meta?: Readonly<Record<string, string>>;
}

const result = { content: [{ type: 'text', text: 'done' }] };

/** A streamable HTTP server that applies each call's effect before it answers in the way that it was told. */
export async function fakeHttp(tools: readonly object[]): Promise<FakeHttp> {
  const state = {
    effects: [] as string[],
    sessions: [] as string[],
    headers: [] as IncomingMessage['headers'][],
    methods: [] as string[],
    keys: [] as (string | null)[],
  };
  let live = new Set<string>();
  const answers: Answering[] = [];
  const server = createServer(async (request, response) => {
    if (request.method !== 'POST') return void response.writeHead(request.method === 'GET' ? 405 : 200).end();
    state.headers.push(request.headers);
    let body = '';
    for await (const chunk of request) body += String(chunk);
    const { id, method, params } = JSON.parse(body) as { id?: number; method: string; params: Params };
    state.methods.push(method);
    const reply = (value: unknown) => json(response, { jsonrpc: '2.0', id, result: value });
    if (method === 'initialize') {
      const session = `s${state.sessions.length + 1}`;
      state.sessions.push(session);
      live.add(session);
      response.setHeader('mcp-session-id', session);
      const { protocolVersion } = params;
      return reply({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'f', version: '1' } });
    }
    if (!live.has(String(request.headers['mcp-session-id']))) return void response.writeHead(404).end('session gone');
    if (id === undefined) return void response.writeHead(202).end();
    if (method === 'ping') return reply({});
    if (method === 'tools/list') return reply({ tools });
    state.effects.push(params.name);
    state.keys.push(params._meta?.['pawl/idempotencyKey'] ?? null);
    act(answers.shift() ?? 'json', id, response, live);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  onTestFinished(stop);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    ...state,
    stop,
    answerWith: (...next) => void answers.push(...next),
    forgetSessions: () => void (live = new Set()),
  };
}

function act(how: Answering, id: number, response: ServerResponse, live: Set<string>): void {
  const event = `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`;
  const stream = () => response.writeHead(200, { 'content-type': 'text/event-stream' });
  switch (how) {
    case 'json':
      return json(response, { jsonrpc: '2.0', id, result });
    case 'sse':
      return void stream().end(event);
    case 'drop':
      return void response.destroy();
    case 'empty_stream':
      return void stream().end(': ping\n\n');
    case 'half_stream':
      return void stream().write(event.slice(0, 40), () => response.destroy());
    case 'session_gone':
      live.clear();
      return void response.writeHead(404).end('session gone');
    case 'gateway_timeout':
      return void response.writeHead(504).end();
    case 'never':
      return;
    case 'unauthorized':
      return void response.writeHead(401).end();
    case 'gateway_closed':
      return json(response, { jsonrpc: '2.0', id, error: { code: -32000, message: 'Connection closed' } });
  }
}

function json(response: ServerResponse, message: unknown): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(message));
}
