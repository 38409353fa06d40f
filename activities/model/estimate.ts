import type { StoredTool } from '../store/schema.ts';
import type { Shown } from './port.ts';

const BYTES_PER_TOKEN = 4;
const MESSAGE_OVERHEAD_TOKENS = 4;
const CALL_OVERHEAD_TOKENS = 8;

/** Tokens of a text by its size in UTF-8: rough, the same everywhere, no tokenizer. */
export function estimateText(text: string): number {
  return Math.ceil(Buffer.byteLength(text, 'utf8') / BYTES_PER_TOKEN);
}

/** Tokens of one message, with what the provider wants back of it. */
export function estimateMessage(message: Shown): number {
  const text = MESSAGE_OVERHEAD_TOKENS + estimateText(message.text);
  if (message.kind === 'tool_result') return text + CALL_OVERHEAD_TOKENS;
  if (message.kind !== 'assistant') return text;
  const extra = Object.keys(message.extra).length > 0 ? estimateText(JSON.stringify(message.extra)) : 0;
  return message.calls.reduce(
    (sum, call) => sum + CALL_OVERHEAD_TOKENS + estimateText(call.name) + estimateText(call.arguments),
    text + extra,
  );
}

/** Tokens of the tool list, which goes with every request. */
export function estimateTools(tools: readonly StoredTool[]): number {
  return tools.reduce(
    (sum, { name, description, parameters }) =>
      sum +
      CALL_OVERHEAD_TOKENS +
      estimateText(name) +
      estimateText(description) +
      estimateText(JSON.stringify(parameters)),
    0,
  );
}
