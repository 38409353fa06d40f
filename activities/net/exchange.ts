import { type IncomingMessage, request as httpRequest, validateHeaderName, validateHeaderValue } from 'node:http';
import type { Socket } from 'node:net';
import type { Hop } from './redirects.ts';

export interface Answer {
  readonly status: number;
  /** Lower-case names; several of one name joined by a comma. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Whether the body was read to its end: past the limit it is cut, and a connection may break. */
  readonly whole: 'whole' | 'cut' | 'broken';
}

/** Headers that are the connection's business, not the caller's. */
const OURS =
  /^(host|connection|keep-alive|content-length|transfer-encoding|te|trailer|upgrade|expect|accept-encoding|proxy-.*)$/i;

export function isHeaderSafe(name: string, value: string): boolean {
  if (OURS.test(name)) return false;
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    return true;
  } catch {
    return false;
  }
}

/** One request and its answer on an open connection. It throws where no answer came. */
export async function exchange(
  socket: Socket,
  url: URL,
  { method, headers, body }: Hop,
  options: { readonly signal: AbortSignal; readonly maxBytes: number },
): Promise<Answer> {
  const request = httpRequest({
    createConnection: () => socket,
    method,
    path: `${url.pathname}${url.search}`,
    headers: {
      'user-agent': 'pawl',
      accept: '*/*',
      ...headers,
      host: url.host,
      connection: 'close',
      'accept-encoding': 'identity',
      ...(body === null ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
    },
    signal: options.signal,
  });
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve);
    request.once('error', reject);
    request.once('close', () => reject(new Error('closed without an answer')));
    request.end(body ?? undefined);
  });
  // After the head, a broken body is part of the answer.
  request.on('error', () => {});
  return { status: response.statusCode ?? 0, headers: plain(response), ...(await read(response, options.maxBytes)) };
}

async function read(response: IncomingMessage, maxBytes: number): Promise<Pick<Answer, 'body' | 'whole'>> {
  const parts: Buffer[] = [];
  let size = 0;
  const body = () => Buffer.concat(parts).subarray(0, maxBytes);
  try {
    for await (const part of response as AsyncIterable<Buffer>) {
      parts.push(part);
      size += part.length;
      if (size > maxBytes) return { body: body(), whole: 'cut' };
    }
    return { body: body(), whole: 'whole' };
  } catch {
    return { body: body(), whole: 'broken' };
  }
}

function plain({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : (value ?? '')]),
  );
}
