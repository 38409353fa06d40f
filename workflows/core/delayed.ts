/** Ms since the epoch. */
export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** A result for which nobody was there for a while: all workers were away, or the engine. That is no running time. */
export interface Delayed<T> {
  readonly kind: 'delayed';
  readonly away: readonly Span[];
  readonly came: T;
}

export interface Came<T> {
  readonly came: T;
  readonly away: readonly Span[];
}

/** What an activity came back with, and when nobody worked on it. */
export function cameOf<T>(result: T | Delayed<T>): Came<T> {
  return isDelayed(result) ? result : { came: result, away: [] };
}

function isDelayed<T>(result: T | Delayed<T>): result is Delayed<T> {
  return typeof result === 'object' && result !== null && 'kind' in result && result.kind === 'delayed';
}

/** How long nobody was there, what lies before `countedToMs` left out; and up to when that is counted now. */
export function awayFor(
  away: readonly Span[],
  countedToMs: number,
): { readonly awayMs: number; readonly toMs: number } {
  let [awayMs, toMs] = [0, countedToMs];
  for (const span of away) {
    awayMs += Math.max(0, span.toMs - Math.max(span.fromMs, toMs));
    toMs = Math.max(toMs, span.toMs);
  }
  return { awayMs, toMs };
}
