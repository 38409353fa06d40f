import type { Shown } from '../model/port.ts';
import { estimateText } from '../model/estimate.ts';
import { fitText } from '../tools/text.ts';

const RESULT_CHARS = [4_000, 2_000, 1_000, 500, 200, 80];

/**
 * A conversation as plain text: it has no calls that could lack a result, needs no list of tools, and can be
 * cut to any size. Results give way first, then the middle of the whole.
 */
export function toPlainText(messages: readonly Shown[], maxTokens: number): string {
  let text = '';
  for (const chars of RESULT_CHARS) {
    text = messages.map((message) => linesOf(message, chars)).join('\n');
    if (estimateText(text) <= maxTokens) return text;
  }
  return fitText(text, Math.floor((maxTokens * 4 * text.length) / Buffer.byteLength(text)));
}

/** What people and the model itself said is worth more room than what tools printed. */
const SAID_FACTOR = 4;

function linesOf(message: Shown, chars: number): string {
  switch (message.kind) {
    case 'assistant': {
      const said = message.text.trim() === '' ? [] : [`[agent] ${fitted(message.text, chars * SAID_FACTOR)}`];
      const calls = message.calls.map(({ name, arguments: args }) => `[call] ${name} ${fitted(args, chars)}`);
      return [...said, ...calls].join('\n');
    }
    case 'tool_result':
      return `[result of ${message.tool}${message.isError ? ', failed' : ''}] ${fitted(message.text, chars)}`;
    case 'user':
      return `[${message.source}] ${fitted(message.text, chars * SAID_FACTOR)}`;
    case 'compaction':
      return `[summary of what was before]\n${message.text}`;
    default:
      return `[${message.kind}] ${fitted(message.text, chars * SAID_FACTOR)}`;
  }
}

function fitted(text: string, chars: number): string {
  return fitText(text, Math.max(chars, 120));
}
