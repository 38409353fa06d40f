import { ReadableStream } from 'node:stream/web';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { DROPPED } from './fate.ts';
import { type HttpServer, MCP, Unusable } from './servers.ts';

const RESUME = {
  initialReconnectionDelay: 200,
  maxReconnectionDelay: 1_000,
  reconnectionDelayGrowFactor: 2,
  maxRetries: 2,
};
/** The library reads the last chunk of a stream before this is over; then there is no answer in it. */
const SETTLE_MS = 100;
/** How the library says that it gave up on a stream; it tells only `onerror`. */
const GAVE_UP = /^Maximum reconnection attempts/;

/**
 * The library's transport, made to notice what it keeps quiet about: when the stream of a request ends without an
 * answer, the request would wait for ever.
 */
export function httpTransport(server: HttpServer): StreamableHTTPClientTransport {
  const transport: StreamableHTTPClientTransport = new StreamableHTTPClientTransport(new URL(server.url), {
    requestInit: { headers: headersOf(server) },
    reconnectionOptions: RESUME,
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      const ids = init?.method === 'POST' ? requestIds(init.body) : [];
      return bounded(response, ids, (id) => drop(transport, id));
    },
  });
  return transport;
}

/** True for the error after which no stream of this connection can bring an answer any more. */
export function gaveUp(error: Error): boolean {
  return GAVE_UP.test(error.message);
}

function headersOf({ url, headersEnv = {} }: HttpServer): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headersEnv).map(([header, variable]) => {
      const value = process.env[variable];
      if (value === undefined)
        throw new Unusable(`The header ${header} for ${url} needs ${variable}, which is not set.`);
      return [header, value];
    }),
  );
}

function requestIds(body: unknown): readonly (string | number)[] {
  if (typeof body !== 'string') return [];
  const message = JSON.parse(body) as { readonly id?: string | number; readonly method?: string };
  return message.id === undefined || message.method === undefined ? [] : [message.id];
}

/** An answer for the request that will get none; if it had one already, this one is ignored. */
function drop(transport: StreamableHTTPClientTransport, id: string | number): void {
  transport.onmessage?.({
    jsonrpc: '2.0',
    id,
    error: { code: DROPPED, message: 'The stream ended without an answer.' },
  });
}

function bounded(
  response: Response,
  ids: readonly (string | number)[],
  dropped: (id: string | number) => void,
): Response {
  if (!response.ok || response.body === null) return response;
  const isStream = response.headers.get('content-type')?.includes('text/event-stream') ?? false;
  const body = watched(response.body as ReadableStream<Uint8Array>, isStream, (resumable) => {
    if (!isStream || resumable) return;
    setTimeout(() => ids.forEach(dropped), SETTLE_MS);
  });
  const { status, statusText, headers } = response;
  return new Response(ReadableStream.from(body) as unknown as globalThis.ReadableStream, {
    status,
    statusText,
    headers,
  });
}

/** Passes bytes on; a message that is too large ends the stream. Events with an id make it resumable. */
async function* watched(body: ReadableStream<Uint8Array>, isStream: boolean, ended: (resumable: boolean) => void) {
  let resumable = false;
  let size = 0;
  let end = '\n';
  try {
    for await (const chunk of body) {
      const text = end + Buffer.from(chunk).toString('latin1');
      if (isStream && /[\r\n]id:/.test(text)) resumable = true;
      const lineBreak = isStream ? Math.max(text.lastIndexOf('\n'), text.lastIndexOf('\r')) : 0;
      size = lineBreak > 0 ? text.length - lineBreak : size + chunk.length;
      if (size > MCP.messageBytes) throw new Error('The MCP server sent a message that is too large.');
      end = text.slice(-4);
      yield chunk;
    }
  } finally {
    ended(resumable);
  }
}
