import { lookup } from 'node:dns/promises';
import { isIP, connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type Allowed, bareHost, isPublic, portOf } from './addresses.ts';

/** From a host name to its addresses. Injected by tests; the system's resolver otherwise. */
export type Resolve = (host: string) => Promise<readonly string[]>;

export type Connected =
  | { readonly kind: 'connected'; readonly socket: Socket }
  | { readonly kind: 'refused' | 'never_sent'; readonly note: string; readonly text: string };

const CONNECT_MS = 10_000;

export const systemResolve: Resolve = async (host) =>
  (await lookup(host, { all: true, order: 'ipv4first' })).map(({ address }) => address);

/**
 * Connects to an address that was looked at, never to a name: whoever answers the name differently the next
 * time changes nothing. The certificate is checked against the name.
 */
export async function connectGuarded(
  url: URL,
  options: { readonly allowed: Allowed; readonly resolve: Resolve; readonly signal: AbortSignal },
): Promise<Connected> {
  const { allowed, resolve, signal } = options;
  const host = bareHost(url);
  let addresses: readonly string[];
  try {
    addresses = isIP(host) ? [host] : await unlessAborted(resolve(host), signal);
  } catch (error) {
    return neverSent(error, `The name ${host} could not be resolved`);
  }
  // One private address among public ones is how a rebinding name looks.
  const bad = allowed.host(url) ? undefined : addresses.find((each) => !isPublic(each) && !allowed.address(each));
  if (bad !== undefined) {
    return {
      kind: 'refused',
      note: 'private_address',
      text: `${host} is not on the public internet, and the configuration does not allow it.`,
    };
  }
  let failed: Connected = { kind: 'never_sent', note: 'no_address', text: `${host} has no address.` };
  for (const address of addresses) {
    try {
      return { kind: 'connected', socket: await open(url, address, signal) };
    } catch (error) {
      failed = neverSent(error, `There was no connection to ${host}`);
      if (signal.aborted) break;
    }
  }
  return failed;
}

/** The system's resolver can't be stopped; it is left to itself. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  return await new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    work.then(resolve, reject);
  });
}

async function open(url: URL, address: string, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted();
  const at = { host: address, port: portOf(url) };
  const host = bareHost(url);
  const secure = url.protocol === 'https:';
  const socket = secure
    ? connectTls({ ...at, ...(isIP(host) ? {} : { servername: host }), ALPNProtocols: ['http/1.1'] })
    : connectPlain(at);
  const limit = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_MS)]);
  try {
    await new Promise<void>((resolve, reject) => {
      limit.addEventListener('abort', () => reject(limit.reason as Error), { once: true });
      socket.once('error', reject);
      socket.once('close', () => reject(new Error('closed while it was opened')));
      socket.once(secure ? 'secureConnect' : 'connect', resolve);
    });
    // Later faults belong to the request; one between the two must not end the process.
    socket.on('error', () => {});
    return socket;
  } catch (error) {
    socket.on('error', () => {});
    socket.destroy();
    throw error;
  }
}

function neverSent(error: unknown, what: string): Connected {
  const note = noteOf(error);
  return { kind: 'never_sent', note, text: `${what} (${note}). Nothing was sent.` };
}

/** Error class of a transport fault: a fixed word, never content. */
export function noteOf(error: unknown): string {
  if (!(error instanceof Error)) return 'error';
  const { code } = error as Error & { code?: unknown };
  return typeof code === 'string' ? code : error.name === 'TimeoutError' ? 'timeout' : error.name;
}
