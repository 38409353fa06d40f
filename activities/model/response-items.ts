import type { ToolCall } from '../../workflows/core/transcript.ts';
import { asArray, asObjects, asText, type JsonObject } from './json.ts';

/** Key in a message's `extra`: the items of its response in their order, calls and a lone text as stand-ins. */
export const OUTPUT_ITEMS = 'output_items';

/** What the items of a response say. */
export interface Said {
  readonly text: string;
  readonly refused: boolean;
  readonly calls: readonly ToolCall[];
  /** Some item stops in the middle, by its own word. */
  readonly isCut: boolean;
}

export function readItems(items: readonly JsonObject[]): Said {
  const parts = items.filter(isMessage).flatMap((item) => asObjects(item['content']));
  return {
    text: items.filter(isMessage).map(textOf).join(''),
    refused: parts.some((part) => part['type'] === 'refusal'),
    calls: items.filter(isCall).map(callOf),
    isCut: items.some((item) => item['status'] === 'incomplete'),
  };
}

/**
 * What a message must remember so that its response can be sent back: reasoning as it came, and where it stood
 * between texts and calls, since a provider refuses reasoning without the item that followed it.
 */
export function itemsToKeep(items: readonly JsonObject[]): JsonObject {
  const texts = items.filter(isMessage);
  const isWorthIt = items.some((item) => isReturnable(item) || (isMessage(item) && item['phase'] != null));
  if (!isWorthIt) return {};
  const kept = items.flatMap((item): JsonObject[] => {
    if (isReturnable(item)) return [withoutStatus(item)];
    if (isCall(item)) return [{ type: 'function_call' }];
    if (!isMessage(item)) return [];
    const phase = item['phase'] == null ? {} : { phase: item['phase'] };
    return [{ type: 'message', ...phase, ...(texts.length > 1 ? { text: textOf(item) } : {}) }];
  });
  return { [OUTPUT_ITEMS]: kept };
}

/** What `itemsToKeep` kept; empty for a message of another wire. */
export function keptItems(extra: JsonObject): readonly JsonObject[] {
  return asObjects(extra[OUTPUT_ITEMS]);
}

export function isMessage(item: JsonObject): boolean {
  return item['type'] === 'message';
}

export function isCall(item: JsonObject): boolean {
  return item['type'] === 'function_call';
}

/** Nothing is stored with the provider, so reasoning that does not bring its content can't be named later. */
function isReturnable(item: JsonObject): boolean {
  if (item['type'] !== 'reasoning') return false;
  return asText(item['encrypted_content']) !== '' || asArray(item['content']).length > 0;
}

/** A status, and fields that are null, are refused in a request. */
function withoutStatus(item: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(item).filter(([key, value]) => key !== 'status' && value != null));
}

function textOf(item: JsonObject): string {
  const { content } = item;
  if (typeof content === 'string') return content;
  return asObjects(content)
    .map((part) => asText(part['text']) + asText(part['refusal']))
    .join('');
}

function callOf(item: JsonObject): ToolCall {
  const args = item['arguments'];
  return {
    id: (asText(item['call_id']) || asText(item['id'])).trim(),
    name: asText(item['name']).trim(),
    arguments: typeof args === 'object' && args !== null ? JSON.stringify(args) : asText(args),
  };
}
