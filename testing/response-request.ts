import type { ChatRequest, ChatRequestCall, ChatRequestMessage } from './chat-request.ts';

type Item = Readonly<Record<string, unknown>>;

/** The body of a Responses API request, as the scripted provider reads it. */
export interface ResponseRequest {
  readonly model: string;
  readonly instructions?: string;
  readonly input: readonly Item[];
  readonly tools?: readonly Item[];
  readonly stream?: boolean;
  readonly [field: string]: unknown;
}

/** The same conversation in the words of chat completions, so that one script serves both wires. */
export function asChatRequest(body: ResponseRequest): ChatRequest {
  const { model, instructions, input, tools, stream, ...rest } = body;
  const system: ChatRequestMessage[] = instructions === undefined ? [] : [{ role: 'system', content: instructions }];
  return {
    ...rest,
    model,
    messages: [...system, ...messagesOf(input)],
    ...(tools ? { tools: tools.map((tool) => ({ type: 'function', function: { name: text(tool, 'name') } })) } : {}),
    ...(stream === undefined ? {} : { stream }),
    stream_options: { include_usage: true },
  };
}

interface Own {
  role: 'assistant';
  content: string | null;
  reasoning_items?: Item[];
  tool_calls?: ChatRequestCall[];
}

/** Reasoning, text and calls between two messages of other roles are one assistant message. */
function messagesOf(input: readonly Item[]): ChatRequestMessage[] {
  const messages: (ChatRequestMessage | Own)[] = [];
  let open: Own | null = null;
  for (const item of input) {
    const isOwn = item['type'] === 'reasoning' || item['type'] === 'function_call' || item['role'] === 'assistant';
    if (!isOwn) {
      open = null;
      messages.push(otherMessage(item));
      continue;
    }
    if (!open) messages.push((open = { role: 'assistant', content: null }));
    if (item['type'] === 'reasoning') open.reasoning_items = [...(open.reasoning_items ?? []), item];
    else if (item['type'] === 'function_call') open.tool_calls = [...(open.tool_calls ?? []), callOf(item)];
    else open.content = (open.content ?? '') + text(item, 'content');
  }
  return messages as ChatRequestMessage[];
}

function otherMessage(item: Item): ChatRequestMessage {
  return item['type'] === 'function_call_output'
    ? { role: 'tool', tool_call_id: text(item, 'call_id'), content: item['output'] }
    : { role: item['role'] as ChatRequestMessage['role'], content: item['content'] };
}

function callOf(item: Item): ChatRequestCall {
  return {
    id: text(item, 'call_id'),
    type: 'function',
    function: { name: text(item, 'name'), arguments: text(item, 'arguments') },
  };
}

const INPUT_FIELDS: Readonly<Record<string, readonly string[]>> = {
  message: ['type', 'role', 'content', 'phase'],
  function_call: ['type', 'call_id', 'name', 'arguments'],
  function_call_output: ['type', 'call_id', 'output'],
  reasoning: ['type', 'id', 'summary', 'content', 'encrypted_content'],
};

/** What the Responses API would refuse in this request beside calls without outputs, or null. */
export function responseFault(body: ResponseRequest): string | null {
  if (body['store'] !== false) return 'store is not false';
  if ('messages' in body || 'max_tokens' in body) return 'it has fields of chat completions';
  for (const [n, tool] of (body.tools ?? []).entries()) {
    if (typeof tool['name'] !== 'string' || typeof tool['strict'] !== 'boolean')
      return `tools[${n}] is not flat, or not strict by its own word`;
  }
  for (const [n, item] of body.input.entries()) {
    const fault = itemFault(item, body.input[n + 1], body);
    if (fault) return `input[${n}] ${fault}`;
  }
  return null;
}

function itemFault(item: Item, next: Item | undefined, body: ResponseRequest): string | null {
  const fields = INPUT_FIELDS[text(item, 'type')];
  if (!fields) return `is of the unknown type "${text(item, 'type')}"`;
  const unknown = Object.keys(item).find((key) => !fields.includes(key));
  if (unknown) return `has the unknown field ${unknown}`;
  if (item['type'] !== 'reasoning') return null;
  const asksForMore = Array.isArray(body['include']) && body['include'].includes('reasoning.encrypted_content');
  if (!asksForMore) return 'is reasoning, and include does not ask for it';
  if (!item['encrypted_content'] && !item['content']) return 'is reasoning that is not stored here';
  const follows =
    next && (next['type'] === 'reasoning' || next['type'] === 'function_call' || next['role'] === 'assistant');
  return follows ? null : 'is reasoning without the item that followed it';
}

function text(item: Item, key: string): string {
  const value = item[key];
  return typeof value === 'string' ? value : '';
}
