import type { ChatCompletionFunctionTool, ChatCompletionMessageParam } from 'openai/resources/chat/completions';
import type { Message } from '../../workflows/core/transcript.ts';
import { lowerTools, type SchemaRules } from './lower-schema.ts';
import type { StoredTool } from '../store/schema.ts';
import { CALL_EXTRAS } from './accumulate.ts';
import { asObject, type JsonObject } from './json.ts';
import type { Shown } from './port.ts';
import { repairPairs } from './repair-pairs.ts';
import { returning, type Target } from './returning.ts';
import { OUTPUT_ITEMS } from './response-items.ts';
import { wireIds } from './wire-ids.ts';
import { clean, filled, wireArguments, wireName } from './wire-text.ts';

type Assistant = Extract<Message, { kind: 'assistant' }>;

export interface ChatTarget extends Target {
  readonly instructions: string;
}

/** The transcript as chat messages; every call has its result, every id is unique. */
export function toChatMessages(messages: readonly Shown[], target: ChatTarget): ChatCompletionMessageParam[] {
  const paired = repairPairs(messages);
  const ids = wireIds(paired);
  const goesBack = returning(paired, target);
  const chat: ChatCompletionMessageParam[] = [];
  let open: readonly string[] = [];
  if (target.instructions.trim() !== '') chat.push({ role: 'system', content: clean(target.instructions) });
  for (const [n, message] of paired.entries()) {
    if (message.kind === 'assistant') {
      open = ids[n] ?? [];
      chat.push(...assistant(message, open, goesBack(n) ? message.extra : {}));
    } else if (message.kind === 'tool_result') {
      chat.push({ role: 'tool', tool_call_id: open[message.ordinal] ?? '', content: filled(message.text) });
    } else {
      chat.push({ role: 'user', content: filled(message.text) });
    }
  }
  return chat;
}

/** What a provider's schema dialect can't express is left out; the original still validates the arguments. */
export function toChatTools(tools: readonly StoredTool[], rules: SchemaRules): ChatCompletionFunctionTool[] {
  return lowerTools(tools, rules).tools.map(({ name, description, parameters, strict }) => ({
    type: 'function',
    function: {
      name,
      description: clean(description),
      parameters: { type: 'object', properties: {}, ...parameters },
      ...(strict ? { strict } : {}),
    },
  }));
}

/** A message with neither text nor calls says nothing, and some providers refuse it. */
function assistant(message: Assistant, ids: readonly string[], extra: JsonObject): ChatCompletionMessageParam[] {
  if (message.text.trim() === '' && ids.length === 0) return [];
  const { [CALL_EXTRAS]: callExtras, [OUTPUT_ITEMS]: _otherWire, ...fields } = extra;
  const content = message.text === '' ? null : clean(message.text);
  if (ids.length === 0) return [{ ...fields, role: 'assistant', content }];
  const calls = message.calls.map((call, n) => ({
    ...asObject(asObject(callExtras)?.[n]),
    id: ids[n] ?? '',
    type: 'function' as const,
    function: { name: wireName(call.name), arguments: wireArguments(call.arguments) },
  }));
  return [{ ...fields, role: 'assistant', content, tool_calls: calls }];
}
