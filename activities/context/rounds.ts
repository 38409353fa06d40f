import { NO_RESULT_TEXT } from '../model/repair-pairs.ts';
import type { Shown } from '../model/port.ts';

type Assistant = Extract<Shown, { kind: 'assistant' }>;
type ToolResult = Extract<Shown, { kind: 'tool_result' }>;

/** An assistant message with calls, and their results right behind it, of a transcript whose pairs are whole. */
export interface Round {
  readonly start: number;
  /** Past its last result. */
  readonly end: number;
  readonly assistant: Assistant;
  readonly results: readonly ToolResult[];
}

export function roundsOf(shown: readonly Shown[]): Round[] {
  const rounds: Round[] = [];
  for (const [start, assistant] of shown.entries()) {
    if (assistant.kind !== 'assistant' || assistant.calls.length === 0) continue;
    const results: ToolResult[] = [];
    for (let at = start + 1; at < shown.length; at += 1) {
      const next = shown[at];
      if (next?.kind !== 'tool_result') break;
      results.push(next);
    }
    rounds.push({ start, end: start + 1 + results.length, assistant, results });
  }
  return rounds;
}

/** Every call has a result that somebody recorded. */
export function isFinished({ assistant, results }: Round): boolean {
  return results.length === assistant.calls.length && results.every(({ text }) => text !== NO_RESULT_TEXT);
}

/** Index of the first message that belongs to the newest `count` rounds, or comes after older ones. */
export function oldestOfNewest(shown: readonly Shown[], count: number): number {
  return roundsOf(shown).at(-count)?.start ?? 0;
}
