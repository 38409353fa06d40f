import { POLICY } from '../../workflows/core/policy.ts';
import { estimateText } from '../model/estimate.ts';
import type { Shown } from '../model/port.ts';
import { isFinished, type Round, roundsOf } from './rounds.ts';
import { firstLine } from './snip.ts';
import { type Stage, sumTokens, tokensOf } from './stage.ts';

/**
 * Finished older rounds become one line for each call, oldest first, whole rounds only: no call loses its
 * result, and none stays behind without its reasoning. Neighbours share one message.
 */
export const collapse: Stage = (shown, { needTokens }) => {
  if (needTokens <= 0) return { shown, freedTokens: 0 };
  const older = roundsOf(shown).slice(0, -POLICY.context.collapse.keptRounds).filter(isFinished);
  const rounds = new Map(older.map((round) => [round.start, round]));
  const left: Shown[] = [];
  let lines: string[] = [];
  let folded = 0;
  const flush = () => {
    if (lines.length > 0) left.push(projection(left, lines));
    lines = [];
  };
  for (let at = 0; at < shown.length; at += 1) {
    const round = folded < needTokens ? rounds.get(at) : undefined;
    const line = round ? linesOf(round) : null;
    const saved = round && line ? sumTokens(shown.slice(at, round.end)) - estimateText(line) - 1 : 0;
    if (round && line && saved > TITLE_TOKENS) {
      lines.push(line);
      folded += saved;
      at = round.end - 1;
    } else {
      flush();
      left.push(...shown.slice(at, at + 1));
    }
  }
  flush();
  return folded === 0 ? { shown, freedTokens: 0 } : { shown: left, freedTokens: sumTokens(shown) - sumTokens(left) };
};

/** Goes on with the projection that it follows, while that is short: what is long is not copied each time. */
function projection(left: Shown[], lines: readonly string[]): Shown {
  const last = left.at(-1);
  if (last?.kind !== 'projection' || last.text.length > LONG_CHARS)
    return { kind: 'projection', text: [TITLE, ...lines].join('\n') };
  left.pop();
  return { kind: 'projection', text: [last.text, ...lines].join('\n') };
}

const LONG_CHARS = 8_000;
const TITLE = '[Earlier steps, one line for each call:]';
const TITLE_TOKENS = tokensOf({ kind: 'projection', text: TITLE });

function linesOf({ assistant, results }: Round): string {
  const { lineChars } = POLICY.context;
  const said = firstLine(assistant.text, lineChars);
  const calls = results.map((result, n) => {
    const asked = firstLine(assistant.calls[n]?.arguments ?? '', lineChars);
    // An arrow of its own alphabet would double the bytes of the whole request in memory.
    return `- ${result.tool} ${asked} -> ${result.isError ? 'failed: ' : ''}${firstLine(result.text, lineChars)}`;
  });
  return [...(said === '' ? [] : [`- said: ${said}`]), ...calls].join('\n');
}
