import { estimateMessage } from '../model/estimate.ts';
import type { Shown } from '../model/port.ts';

/** What a stage of the pipeline is told. */
export interface Pressure {
  /** What is still to be freed; none at 0 or below. */
  readonly needTokens: number;
  readonly contextTokens: number;
  /** Tools whose calls only read, so that they can be called again. */
  readonly readers: ReadonlySet<string>;
}

/** What a stage leaves, and the tokens it freed: the next one needs that much less. */
export interface Trimmed {
  readonly shown: readonly Shown[];
  readonly freedTokens: number;
}

/** One step from a chain to a request. Pure: it writes nothing, and the messages themselves stay as they are. */
export type Stage = (shown: readonly Shown[], pressure: Pressure) => Trimmed;

const known = new WeakMap<Shown, number>();

/** Tokens of a message by its size, worked out once for each. */
export function tokensOf(message: Shown): number {
  const before = known.get(message);
  if (before !== undefined) return before;
  const tokens = estimateMessage(message);
  known.set(message, tokens);
  return tokens;
}

export function sumTokens(shown: readonly Shown[]): number {
  return shown.reduce((sum, message) => sum + tokensOf(message), 0);
}

/** Replaces messages, oldest first, until enough is freed. */
export function replacing(
  shown: readonly Shown[],
  needTokens: number,
  shorter: (message: Shown, n: number) => Shown | null,
): Trimmed {
  let freedTokens = 0;
  const left = shown.map((message, n) => {
    const other = freedTokens < needTokens ? shorter(message, n) : null;
    const saved = other ? tokensOf(message) - tokensOf(other) : 0;
    if (!other || saved <= 0) return message;
    freedTokens += saved;
    return other;
  });
  return freedTokens === 0 ? { shown, freedTokens } : { shown: left, freedTokens };
}
