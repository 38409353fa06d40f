import type { EasyInputMessage, FunctionTool, ResponseInputItem } from 'openai/resources/responses/responses';
import type { Message } from '../../workflows/core/transcript.ts';
import type { StoredTool } from '../store/schema.ts';
import { asText, type JsonObject } from './json.ts';
import { lowerTools, type SchemaRules } from './lower-schema.ts';
import type { Shown } from './port.ts';
import { repairPairs } from './repair-pairs.ts';
import { isCall, isMessage, keptItems } from './response-items.ts';
import { returning, type Target } from './returning.ts';
import { wireIds } from './wire-ids.ts';
import { clean, filled, wireArguments, wireName } from './wire-text.ts';

type Assistant = Extract<Message, { kind: 'assistant' }>;

/** The transcript as items; every call has its output, every id is unique, reasoning stands before what it led to. */
export function toResponseInput(messages: readonly Shown[], target: Target): ResponseInputItem[] {
  const paired = repairPairs(messages);
  const ids = wireIds(paired);
  const goesBack = returning(paired, target);
  let open: readonly string[] = [];
  return paired.flatMap((message, n): ResponseInputItem[] => {
    if (message.kind === 'assistant') {
      open = ids[n] ?? [];
      return assistant(message, open, goesBack(n) ? keptItems(message.extra) : []);
    }
    if (message.kind === 'tool_result') {
      const callId = open[message.ordinal] ?? '';
      return [{ type: 'function_call_output', call_id: callId, output: filled(message.text) }];
    }
    return [{ type: 'message', role: 'user', content: filled(message.text) }];
  });
}

/** Strict is the default there, so it is always said. */
export function toResponseTools(tools: readonly StoredTool[], rules: SchemaRules): FunctionTool[] {
  return lowerTools(tools, rules).tools.map(({ name, description, parameters, strict }) => ({
    type: 'function',
    name,
    description: clean(description),
    parameters: { type: 'object', properties: {}, ...parameters },
    strict,
  }));
}

function assistant(message: Assistant, ids: readonly string[], kept: readonly JsonObject[]): ResponseInputItem[] {
  const calls = message.calls.map(
    (call, n): ResponseInputItem => ({
      type: 'function_call',
      call_id: ids[n] ?? '',
      name: wireName(call.name),
      arguments: wireArguments(call.arguments),
    }),
  );
  if (!fits(message, kept)) return [...said(message.text), ...calls];
  const items = kept.flatMap((item): ResponseInputItem[] => {
    if (isCall(item)) return calls.splice(0, 1);
    if (isMessage(item)) return said('text' in item ? asText(item['text']) : message.text, item['phase']);
    return [{ ...item } as unknown as ResponseInputItem];
  });
  return items.slice(0, items.findLastIndex((item) => item.type !== 'reasoning') + 1);
}

/** A message with empty text says nothing. */
function said(text: string, phase?: unknown): ResponseInputItem[] {
  if (text.trim() === '') return [];
  const item: EasyInputMessage = { type: 'message', role: 'assistant', content: clean(text) };
  return [phase === 'commentary' || phase === 'final_answer' ? { ...item, phase } : item];
}

/** The message has not been changed since: the same calls, the same text. */
function fits({ calls, text }: Assistant, kept: readonly JsonObject[]): boolean {
  const texts = kept.filter(isMessage);
  const joined = texts.map((item) => asText(item['text'])).join('');
  const sameText = texts.length > 1 ? joined === text : texts.length === 1 || text === '';
  return kept.length > 0 && sameText && kept.filter(isCall).length === calls.length;
}
