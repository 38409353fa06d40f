/** A result for which nobody was there for a while: all workers were away, or the engine. That is no running time. */
export interface Delayed<T> {
  readonly kind: 'delayed';
  readonly awayMs: number;
  readonly came: T;
}

export interface Came<T> {
  readonly came: T;
  readonly awayMs: number;
}

/** What an activity came back with, and how long nobody worked on it. */
export function cameOf<T>(result: T | Delayed<T>): Came<T> {
  return isDelayed(result) ? result : { came: result, awayMs: 0 };
}

function isDelayed<T>(result: T | Delayed<T>): result is Delayed<T> {
  return typeof result === 'object' && result !== null && 'kind' in result && result.kind === 'delayed';
}
