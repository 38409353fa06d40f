/** Anything with headers that are asked for by lower-case name. */
export interface HeaderSource {
  get(name: string): string | null;
}

/**
 * How long the provider asks to wait, in ms: from the headers (ms, seconds or an HTTP date), else from its
 * words. Null where it does not say, or says nothing that could be a wait (negative, past, "abc").
 */
export function retryAfterMs(headers: HeaderSource, text: string, nowMs: number): number | null {
  return (
    fromNumber(headers.get('retry-after-ms'), 1) ??
    fromNumber(headers.get('retry-after'), 1_000) ??
    fromDate(headers.get('retry-after'), nowMs) ??
    fromText(text)
  );
}

function fromNumber(value: string | null, unitMs: number): number | null {
  if (value === null || !/^\s*\d+(\.\d+)?\s*$/.test(value)) return null;
  return Math.ceil(Number(value) * unitMs);
}

function fromDate(value: string | null, nowMs: number): number | null {
  // Date.parse takes "-5" for a date: an HTTP date starts with the name of a day.
  if (value === null || !/^\s*(mon|tue|wed|thu|fri|sat|sun)/i.test(value)) return null;
  const waitMs = Date.parse(value) - nowMs;
  return waitMs > 0 ? waitMs : null;
}

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const DURATION =
  /(?:try again|retry|wait|retrydelay)["']?(?: (?:in|after|for))?:?\s*["']?((?:\d+(?:\.\d+)?\s*(?:ms|s|m|h)[a-z]*\s*)+)/i;

function fromText(text: string): number | null {
  const found = DURATION.exec(text)?.[1];
  if (!found) return null;
  const parts = found.matchAll(/(\d+(?:\.\d+)?)\s*(ms|s|m|h)/gi);
  const sum = [...parts].reduce(
    (total, [, value, unit]) => total + Number(value) * (UNITS_MS[unit?.toLowerCase() ?? ''] ?? 0),
    0,
  );
  return sum > 0 ? Math.ceil(sum) : null;
}
