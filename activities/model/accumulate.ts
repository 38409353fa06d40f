import type { Finish, TokenUsage } from '../../workflows/core/sample-outcome.ts';
import { addFragments, areSound, NO_CALLS } from './call-fragments.ts';
import type { Conclusion, Draft, Step } from './dialect.ts';
import { asArray, asObject, asText, type JsonObject } from './json.ts';
import type { ModelReply } from './port.ts';
import { readUsage, UNKNOWN_USAGE } from './read-usage.ts';

export const EMPTY_DRAFT: Draft = {
  text: '',
  reasoning: '',
  refused: false,
  drafts: NO_CALLS,
  extra: {},
  finish: null,
  done: false,
  usage: null,
};

/**
 * Adds one parsed frame of a chat-completions stream, or a whole completion that came without a stream.
 * A frame that says nothing, such as a gateway's ping, gives the same draft back.
 */
export function accumulate(draft: Draft, frame: JsonObject): Step<Draft> {
  const choice = choiceOf(frame);
  const usage = readUsage(frame, choice) ?? draft.usage;
  const error = frame['error'] ?? choice?.['error'];
  if (error) return { kind: 'failed', draft: { ...draft, usage }, error };
  if (!choice)
    return { kind: 'grown', draft: usage === draft.usage ? draft : { ...draft, usage }, text: '', reasoning: '' };
  const delta = asObject(choice['delta']) ?? asObject(choice['message']) ?? {};
  const refusal = asText(delta['refusal']);
  const text = textOf(delta['content']) + refusal;
  const reasoning = REASONING_FIELDS.map((field) => asText(delta[field])).find((value) => value !== '') ?? '';
  const grown: Draft = {
    text: draft.text + text,
    reasoning: draft.reasoning + reasoning,
    refused: draft.refused || refusal !== '',
    drafts: addFragments(draft.drafts, delta['tool_calls']),
    extra: addExtra(draft.extra, delta),
    finish: asText(choice['finish_reason']) || draft.finish,
    done: draft.done,
    usage,
  };
  return { kind: 'grown', draft: grown, text, reasoning };
}

/** What an ended stream amounts to. */
export function conclude(draft: Draft): Conclusion {
  const usage = draft.usage ?? UNKNOWN_USAGE;
  if (draft.finish === null && !draft.done) return { kind: 'cut', usage: { ...usage, complete: false } };
  if (draft.finish !== null && FAILED_FINISHES.has(draft.finish))
    return { kind: 'failed', finish: draft.finish, usage };
  if (!areSound(draft.drafts)) return { kind: 'malformed', usage };
  const reply = replyOf(draft);
  return { kind: 'reply', finish: finishOf(draft), usage: credible(usage, reply), ...reply };
}

/** A reply that cost nothing is a report that is missing. */
export function credible(usage: TokenUsage, { text, calls }: ModelReply): TokenUsage {
  const said = text !== '' || calls.length > 0;
  return { ...usage, complete: usage.complete && (usage.outputTokens > 0 || !said) };
}

/** The draft as a message, whole or not. */
export function replyOf({ text, reasoning, drafts, extra }: Draft): ModelReply {
  const signed = Object.fromEntries(
    drafts.calls.flatMap((call, n) => (Object.keys(call.extra).length > 0 ? [[n, call.extra]] : [])),
  );
  return {
    text,
    reasoning,
    calls: drafts.calls.map(({ id, name, arguments: args }) => ({ id, name, arguments: args })),
    extra: Object.keys(signed).length > 0 ? { ...extra, [CALL_EXTRAS]: signed } : extra,
  };
}

/** Key in a message's `extra`: the unknown fields of its calls, by ordinal. */
export const CALL_EXTRAS = 'tool_calls';

const REASONING_FIELDS = ['reasoning_content', 'reasoning', 'reasoning_text'];
const STANDARD_FIELDS = new Set(['role', 'content', 'refusal', 'tool_calls', 'function_call']);
const FAILED_FINISHES = new Set(['error', 'network_error', 'insufficient_system_resource']);
const LENGTH_FINISHES = new Set(['length', 'max_tokens', 'model_context_window_exceeded']);

function finishOf({ finish, refused, drafts }: Draft): Finish {
  if (refused || finish === 'content_filter' || finish === 'sensitive') return 'content_filter';
  if (finish !== null && LENGTH_FINISHES.has(finish)) return 'length';
  if (finish === 'stop') return 'stop';
  if (finish === 'tool_calls' || finish === 'function_call') return 'tool_calls';
  return drafts.calls.length > 0 ? 'tool_calls' : 'stop';
}

function choiceOf(frame: JsonObject): JsonObject | null {
  const choices = asArray(frame['choices']).map(asObject);
  return choices.find((choice) => (choice?.['index'] ?? 0) === 0) ?? null;
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return asArray(content)
    .map((part) => asText(asObject(part)?.['text']))
    .join('');
}

/** Streamed text is joined, lists are appended, anything else is replaced by the newest. */
function addExtra(extra: JsonObject, delta: JsonObject): JsonObject {
  const fields = Object.entries(delta).filter(
    ([key, value]) => !STANDARD_FIELDS.has(key) && value != null && value !== '',
  );
  if (fields.length === 0) return extra;
  const grown = fields.map(([key, value]) => {
    const before = extra[key];
    if (Array.isArray(before) && Array.isArray(value)) return [key, [...before, ...value]];
    const joins = REASONING_FIELDS.includes(key) && typeof before === 'string' && typeof value === 'string';
    return [key, joins ? before + value : value];
  });
  return { ...extra, ...Object.fromEntries(grown) };
}
