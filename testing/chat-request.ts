/** What the scripted provider reads of a chat-completions request. */
export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatRequestMessage[];
  readonly tools?: readonly { readonly type: string; readonly function: { readonly name: string } }[];
  readonly stream?: boolean;
  readonly stream_options?: { readonly include_usage?: boolean };
  readonly [field: string]: unknown;
}

export interface ChatRequestMessage {
  readonly role: 'system' | 'developer' | 'user' | 'assistant' | 'tool';
  readonly content?: unknown;
  readonly tool_calls?: readonly ChatRequestCall[];
  readonly tool_call_id?: string;
  readonly [field: string]: unknown;
}

export interface ChatRequestCall {
  readonly id: string;
  readonly type: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

/** Tool results in the whole conversation: what an answer of a crash test may depend on. */
export function countToolResults(request: ChatRequest): number {
  return request.messages.filter((message) => message.role === 'tool').length;
}

/** Text of the newest user message, or `''`. */
export function lastUserText(request: ChatRequest): string {
  const content = request.messages.findLast((message) => message.role === 'user')?.content;
  return typeof content === 'string' ? content : '';
}

/** What a strict provider would refuse in this conversation, or null: every call has exactly one result, right after it. */
export function pairingFault(messages: readonly ChatRequestMessage[]): string | null {
  const seen = new Set<string>();
  let open = new Set<string>();
  for (const [n, message] of messages.entries()) {
    if (message.role === 'tool') {
      const id = message.tool_call_id ?? '';
      if (!open.delete(id)) return `messages[${n}] answers "${id}", which is no open tool call`;
      continue;
    }
    if (open.size > 0) return unanswered(n, open);
    open = new Set();
    for (const call of message.tool_calls ?? []) {
      const fault = callFault(call, seen);
      if (fault) return `messages[${n}] ${fault}`;
      seen.add(call.id);
      open.add(call.id);
    }
  }
  return open.size > 0 ? unanswered(messages.length, open) : null;
}

function unanswered(n: number, open: ReadonlySet<string>): string {
  return `tool calls without a result before messages[${n}]: ${[...open].join(', ')}`;
}

function callFault(call: ChatRequestCall, seen: ReadonlySet<string>): string | null {
  if (!call.id) return 'has a tool call without an id';
  if (seen.has(call.id)) return `repeats the tool call id "${call.id}"`;
  if (!call.function.name) return `has the call "${call.id}" without a name`;
  return isJsonObject(call.function.arguments) ? null : `has arguments of "${call.id}" that are no JSON object`;
}

function isJsonObject(text: unknown): boolean {
  if (typeof text !== 'string') return false;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
