/** One request on the way to the answer. */
export interface Hop {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer | null;
}

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];
/** Headers that prove who asks: another origin must not get them. */
const CREDENTIAL = /^(authorization|cookie|proxy-authorization|idempotency-key)$|token|secret|api-?key|password/i;
const ABOUT_BODY = /^content-/i;

/** Where an answer sends us, or null where it is the answer. Method rules are those of the Fetch standard. */
export function nextHop(
  hop: Hop,
  { status, headers }: { readonly status: number; readonly headers: Readonly<Record<string, string>> },
): Hop | null {
  const { location } = headers;
  if (!REDIRECTS.includes(status) || !location) return null;
  const url = URL.canParse(location, hop.url) ? new URL(location, hop.url) : null;
  // What it is instead of a URL is judged, and refused, like any other.
  if (url === null) return { ...hop, url: location, body: null };
  const toGet = (status === 303 && hop.method !== 'HEAD') || (status <= 302 && hop.method === 'POST');
  const sameOrigin = url.origin === new URL(hop.url).origin;
  const kept = Object.entries(hop.headers).filter(
    ([name]) => (sameOrigin || !CREDENTIAL.test(name)) && !(toGet && ABOUT_BODY.test(name)),
  );
  return {
    url: url.href,
    method: toGet ? 'GET' : hop.method,
    headers: Object.fromEntries(kept),
    body: toGet ? null : hop.body,
  };
}
