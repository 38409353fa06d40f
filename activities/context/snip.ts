import { POLICY } from '../../workflows/core/policy.ts';
import { firstChars } from '../tools/text.ts';
import { oldestOfNewest } from './rounds.ts';
import { replacing, type Stage } from './stage.ts';

/** Old tool output to one line. */
export const snip: Stage = (shown, { needTokens }) => {
  const { keptRounds, minimumChars } = POLICY.context.snip;
  if (needTokens <= 0) return { shown, freedTokens: 0 };
  const limit = oldestOfNewest(shown, keptRounds);
  return replacing(shown, needTokens, (message, n) => {
    if (n >= limit || message.kind !== 'tool_result' || message.text.length < minimumChars) return null;
    return { ...message, text: oneLine(message.text, message.blob) };
  });
};

function oneLine(text: string, blob: string | null): string {
  const line = firstLine(text, POLICY.context.lineChars);
  const kept = blob === null ? '' : `; the whole output is kept: read_output, id ${blob}`;
  return `${line} [... ${text.length - line.length} characters of this old output left out${kept}]`;
}

/** The first line that says something. */
export function firstLine(text: string, chars: number): string {
  const line = text.split('\n', 20).find((candidate) => candidate.trim() !== '') ?? '';
  return firstChars(line.trim(), chars);
}
