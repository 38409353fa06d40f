import { type Allowed, allowing } from './addresses.ts';
import { connectGuarded, noteOf, type Resolve, systemResolve } from './connect.ts';
import { exchange, type Answer, isHeaderSafe } from './exchange.ts';
import { type Hop, nextHop } from './redirects.ts';

export interface GuardedInit {
  readonly method: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
}

export interface GuardOptions {
  /** Host names, `host:port`, addresses and networks that may be reached though they are not public. */
  readonly allow?: readonly string[];
  readonly signal: AbortSignal;
  /** For everything together, redirects too; 60 s if left out. */
  readonly timeoutMs?: number;
  /** Most bytes of the body that are read; the connection is closed then. 1 MiB if left out. */
  readonly maxBytes?: number;
  /** How many are followed; 5 if left out. */
  readonly redirects?: number;
  /** Looked at when the connection stands and nothing was sent: false means that this attempt is over. */
  readonly maySend?: () => boolean;
  readonly resolve?: Resolve;
}

/**
 * What became of a request. Whether it had left decides: `refused` and `never_sent` are sure to have done
 * nothing; after that only an answer tells, and for whatever is no GET a gateway's answer tells nothing.
 */
export type Fetched =
  | ({ readonly kind: 'answered'; readonly url: string } & Answer)
  | { readonly kind: 'refused' | 'never_sent'; readonly note: string; readonly text: string }
  | { readonly kind: 'unknown_after_send'; readonly note: string; readonly text: string };

/** Answers of somebody between us and the server, who does not know either. */
const GATEWAY: readonly number[] = [502, 503, 504];

/** The one way out for every URL that does not come from the configuration. */
export async function guardedFetch(url: string, init: GuardedInit, options: GuardOptions): Promise<Fetched> {
  const { allow = [], timeoutMs = 60_000, maxBytes = 1024 * 1024, redirects = 5, maySend = () => true } = options;
  const signal = AbortSignal.any([options.signal, AbortSignal.timeout(timeoutMs)]);
  const guard: Guard = {
    allowed: allowing(allow),
    resolve: options.resolve ?? systemResolve,
    signal,
    maxBytes,
    maySend,
  };
  let hop: Hop = { url, method: init.method.toUpperCase(), headers: init.headers ?? {}, body: init.body ?? null };
  // A POST that was answered by "see there" has acted, whatever comes of looking there.
  let hasActed = false;
  for (let left = redirects; ; left--) {
    const fetched = await once(hop, guard);
    if (fetched.kind !== 'answered') return hasActed ? unknownNow(fetched) : fetched;
    const next = nextHop(hop, fetched);
    if (next === null) return fetched;
    if (left === 0) return tooMany(hasActed || hop.method !== 'GET');
    hasActed ||= hop.method !== next.method;
    hop = next;
  }
}

interface Guard {
  readonly allowed: Allowed;
  readonly resolve: Resolve;
  readonly signal: AbortSignal;
  readonly maxBytes: number;
  readonly maySend: () => boolean;
}

async function once(hop: Hop, guard: Guard): Promise<Fetched> {
  const target = URL.canParse(hop.url) ? new URL(hop.url) : null;
  const fault = target === null ? 'This is no absolute URL.' : faultOf(target, hop);
  if (target === null || fault !== null) return { kind: 'refused', note: 'bad_request', text: fault ?? '' };
  const connected = await connectGuarded(target, guard);
  if (connected.kind !== 'connected') return connected;
  const { socket } = connected;
  if (guard.signal.aborted || !guard.maySend()) {
    socket.destroy();
    return { kind: 'never_sent', note: 'aborted', text: 'Stopped before anything was sent.' };
  }
  try {
    const answer = await exchange(socket, target, hop, guard);
    if (isRead(hop.method) || !GATEWAY.includes(answer.status)) return { kind: 'answered', url: hop.url, ...answer };
    return unknown(`HTTP ${answer.status}`);
  } catch (error) {
    return unknown(guard.signal.aborted ? 'aborted' : noteOf(error));
  } finally {
    socket.destroy();
  }
}

function faultOf(url: URL, { headers }: Hop): string | null {
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'Only http and https URLs can be fetched.';
  if (url.username !== '' || url.password !== '') return 'Put no user name or password into a URL.';
  const bad = Object.entries(headers).find(([name, value]) => !isHeaderSafe(name, value));
  return bad === undefined ? null : `The header ${JSON.stringify(bad[0].slice(0, 60))} can't be sent.`;
}

function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}

function unknown(note: string): Fetched {
  return {
    kind: 'unknown_after_send',
    note,
    text: `The request had been sent when this happened: ${note}. Whether it was carried out is not known.`,
  };
}

function unknownNow(fetched: Exclude<Fetched, { kind: 'answered' }>): Fetched {
  return unknown(fetched.note);
}

function tooMany(mayHaveActed: boolean): Fetched {
  if (mayHaveActed) return unknown('too_many_redirects');
  return { kind: 'refused', note: 'too_many_redirects', text: 'It redirects too often.' };
}
