import type { ProviderFailure } from '../../workflows/core/sample-outcome.ts';
import { asObject } from './json.ts';
import { namedWindow, saysImageRefused, saysOverflow } from './overflow.ts';
import { noteOf } from './redact.ts';
import { firstSentence, refusalText } from './refusal-text.ts';
import { type HeaderSource, retryAfterMs } from './retry-after.ts';

/** How a request went wrong, before anybody judged it. */
export type Trouble =
  /** An HTTP status that is no success. `body` is parsed where it was JSON, else text. */
  | { readonly kind: 'answer'; readonly status: number; readonly headers: HeaderSource; readonly body: unknown }
  /** An error object in the middle of a 200 stream. */
  | { readonly kind: 'frame'; readonly error: unknown }
  /** `streaming` once the headers of a 200 had come. */
  | { readonly kind: 'thrown'; readonly error: unknown; readonly streaming: boolean };

export interface Classified {
  readonly failure: ProviderFailure;
  /** Class, status and redacted first line, at most 200 characters. */
  readonly note: string;
}

/** The one place where what a provider did becomes what follows from it. */
export function classify(trouble: Trouble, nowMs: number, secrets: readonly string[] = []): Classified {
  switch (trouble.kind) {
    case 'answer': {
      const failure = fromAnswer(trouble, nowMs);
      return { failure, note: noteOf({ ...failure, status: trouble.status }, firstSentence(trouble.body), secrets) };
    }
    case 'frame': {
      const failure = fromFrame(trouble.error, nowMs);
      return { failure, note: noteOf(failure, `in the stream: ${firstSentence(trouble.error)}`, secrets) };
    }
    case 'thrown': {
      const code = errorCode(trouble.error);
      const failure = fromThrown(code, trouble.streaming);
      const cause = failure.kind === 'transport' ? failure.cause : failure.kind;
      return { failure, note: noteOf(failure, code === '' ? cause : `${cause} ${code}`, secrets) };
    }
  }
}

interface Answer {
  readonly status: number;
  readonly headers: HeaderSource;
  readonly body: unknown;
}

function fromAnswer({ status, headers, body }: Answer, nowMs: number): ProviderFailure {
  const text = refusalText(body);
  const vetoed = headers.get('x-should-retry')?.trim().toLowerCase() === 'false';
  if (!NEVER_OVERFLOW.has(status) && saysOverflow(text)) return overflow(text);
  if (status === 413 || (status < 500 && saysImageRefused(text))) return { kind: 'too_large' };
  if (isAboutKey(status, text)) return { kind: 'auth', status };
  if (status === 429 || status === 402) {
    const quota = status === 402 || saysQuota(text);
    if (vetoed && !quota) return { kind: 'server_error', status, final: true };
    return { kind: 'rate_limited', afterMs: retryAfterMs(headers, text, nowMs), quota };
  }
  if (status < 500 && !RETRIED_STATUSES.has(status)) return { kind: 'invalid_request', status };
  if (vetoed) return { kind: 'server_error', status, final: true };
  if (status === 503 || status === 529 || OVERLOADED.test(text)) {
    return { kind: 'overloaded', status, afterMs: retryAfterMs(headers, text, nowMs) };
  }
  return { kind: 'server_error', status, final: false };
}

function overflow(text: string): ProviderFailure {
  const windowTokens = namedWindow(text);
  return windowTokens === null ? { kind: 'overflow' } : { kind: 'overflow', windowTokens };
}

const NEVER_OVERFLOW = new Set([401, 503, 529]);
/** Conflict and "too early" pass by themselves. */
const RETRIED_STATUSES = new Set([409, 425]);
const OVERLOADED = /\b(overloaded|over capacity|at capacity|throttl\w*)\b|overloaded_error/i;
const QUOTA = /quota|billing|\bcredits?\b|(monthly|daily|weekly|usage|spend\w*) limit|insufficient (balance|funds)/i;
const SHORT_WINDOW = /per[ -](second|minute)|\b[rt]pm\b/i;
const KEY_FAULT =
  /api[-_ ]?key|credential|authenticat|unauthori[sz]ed|bearer|(invalid|expired|revoked|access)[-_ ]token/i;
const KEY_INVALID = /(invalid|incorrect|expired)[-_ ]api[-_ ]key|api[-_ ]key[-_ ](is )?(not valid|invalid|expired)/i;

function saysQuota(text: string): boolean {
  return QUOTA.test(text) && !SHORT_WINDOW.test(text);
}

/** A 403 may be a matter of policy, and a 400 may be a wrong key. */
function isAboutKey(status: number, text: string): boolean {
  return status === 401 || (status === 403 && KEY_FAULT.test(text)) || (status === 400 && KEY_INVALID.test(text));
}

/** The error object may carry the status that could not be sent any more; otherwise its words decide. */
function fromFrame(error: unknown, nowMs: number): ProviderFailure {
  const fields = asObject(error);
  const named = [fields?.['status'], fields?.['status_code'], fields?.['code'], fields?.['http_code']]
    .map(Number)
    .find((value) => Number.isInteger(value) && value >= 400 && value < 600);
  const text = refusalText(error);
  const status = named ?? SPOKEN_STATUS.find(([pattern]) => pattern.test(text))?.[1] ?? 500;
  if (saysOverflow(text)) return overflow(text);
  return fromAnswer({ status, headers: NO_HEADERS, body: error }, nowMs);
}

const NO_HEADERS: HeaderSource = { get: () => null };
const SPOKEN_STATUS: readonly (readonly [RegExp, number])[] = [
  [/rate.?limit|too many requests|too many tokens|insufficient_quota|resource.?exhausted/i, 429],
  [/overloaded|over capacity|at capacity|throttl|unavailable/i, 529],
  [/authentication_error|(invalid|incorrect)[-_ ]api[-_ ]key/i, 401],
  [
    /invalid_(request|prompt|image|base64)|bad_request|invalid_argument|image_\w+|\b(image|picture)s?\b.*too large/i,
    400,
  ],
];

const CONNECT_CODES =
  /^(ECONNREFUSED|ENOTFOUND|EAI_\w+|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|EADDRNOTAVAIL|UND_ERR_CONNECT_TIMEOUT|ERR_INVALID_URL|ERR_(SSL|TLS)_\w+|CERT_\w+|DEPTH_ZERO_\w+|SELF_SIGNED_\w+|UNABLE_TO_\w+)$/;

function fromThrown(code: string, streaming: boolean): ProviderFailure {
  // fetch has clocks of its own, 300 s each, for the headers and between two pieces of the body.
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT') return { kind: 'stalled' };
  if (/^HPE_/.test(code) || code === 'Z_DATA_ERROR') return { kind: 'transport', cause: 'malformed' };
  if (streaming) return { kind: 'transport', cause: 'cut' };
  return { kind: 'transport', cause: CONNECT_CODES.test(code) ? 'connect' : 'reset' };
}

/** The system's code at the bottom of a chain of causes; the message is never read, it may quote content. */
function errorCode(error: unknown): string {
  let code = '';
  let current: unknown = error;
  for (let depth = 0; depth < 8 && current instanceof Error; depth += 1) {
    const own: unknown = (current as NodeJS.ErrnoException).code;
    if (typeof own === 'string' && /^[A-Z][A-Z0-9_]+$/.test(own)) code = own;
    current = current instanceof AggregateError ? current.errors[0] : current.cause;
  }
  return code;
}
