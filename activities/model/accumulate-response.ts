import type { Finish } from '../../workflows/core/sample-outcome.ts';
import { credible, EMPTY_DRAFT } from './accumulate.ts';
import { addFragments, areSound } from './call-fragments.ts';
import type { Conclusion, Draft, Step } from './dialect.ts';
import { asObject, asObjects, asText, type JsonObject } from './json.ts';
import type { ModelReply } from './port.ts';
import { readUsage, UNKNOWN_USAGE } from './read-usage.ts';
import { isMessage, itemsToKeep, readItems } from './response-items.ts';

/**
 * A response while it streams. Texts and calls grow from deltas as in chat completions; items that came whole, one by
 * one or with the last event, are believed before them.
 */
export interface ResponseDraft extends Draft {
  readonly items: readonly JsonObject[];
  /** The items of the last event. */
  readonly output: readonly JsonObject[];
}

export const EMPTY_RESPONSE: ResponseDraft = { ...EMPTY_DRAFT, items: [], output: [] };

type ResponseStep = Step<ResponseDraft>;

/** Adds one event of a responses stream, or a whole response that came without a stream. */
export function accumulateResponse(draft: ResponseDraft, frame: JsonObject, event: string): ResponseStep {
  const type = asText(frame['type']) || event;
  if (type === 'error' || (type === '' && frame['error'])) {
    return { kind: 'failed', draft, error: frame['error'] ?? frame };
  }
  if (frame['object'] === 'response') return concludeWith(draft, frame, asText(frame['status']));
  const ended = LAST_EVENTS[type];
  if (ended !== undefined) {
    const response = asObject(frame['response']) ?? {};
    return concludeWith(draft, response, asText(response['status']) || ended);
  }
  return grow(draft, frame, type);
}

const LAST_EVENTS: Readonly<Record<string, string>> = {
  'response.completed': 'completed',
  'response.incomplete': 'incomplete',
  'response.failed': 'failed',
  'response.cancelled': 'cancelled',
};

function grow(draft: ResponseDraft, frame: JsonObject, type: string): ResponseStep {
  const delta = asText(frame['delta']);
  switch (type) {
    case 'response.output_item.added':
      return grown(withItem(draft, frame));
    case 'response.output_item.done': {
      const item = asObject(frame['item']);
      return grown(item ? { ...draft, items: [...draft.items, item] } : draft);
    }
    case 'response.output_text.delta':
      return grown({ ...draft, text: draft.text + delta }, delta);
    case 'response.refusal.delta':
      return grown({ ...draft, text: draft.text + delta, refused: true }, delta);
    case 'response.reasoning_text.delta':
    case 'response.reasoning_summary_text.delta':
      return grown({ ...draft, reasoning: draft.reasoning + delta }, '', delta);
    case 'response.reasoning_summary_part.added': {
      const gap = draft.reasoning === '' ? '' : '\n\n';
      return grown({ ...draft, reasoning: draft.reasoning + gap }, '', gap);
    }
    case 'response.function_call_arguments.delta':
      return grown(withArguments(draft, frame));
    default:
      return grown(type.startsWith('response.') ? { ...draft } : draft);
  }
}

function grown(draft: ResponseDraft, text = '', reasoning = ''): ResponseStep {
  return { kind: 'grown', draft, text, reasoning };
}

/** Every item that is added is another one, whatever it is called. */
function withItem(draft: ResponseDraft, frame: JsonObject): ResponseDraft {
  const item = asObject(frame['item']);
  if (item?.['type'] !== 'function_call') return { ...draft };
  const id = asText(item['id']);
  return withFragment(draft, {
    index: frame['output_index'],
    id: id || `added ${draft.drafts.calls.length}`,
    function: { name: item['name'], arguments: item['arguments'] },
    [CALL_ID]: asText(item['call_id']) || id,
  });
}

/** Some gateways give an item another id in each event: then its place counts. */
function withArguments(draft: ResponseDraft, frame: JsonObject): ResponseDraft {
  const id = asText(frame['item_id']);
  const isKnown = draft.drafts.calls.some((call) => call.id === id);
  const body = { arguments: frame['delta'] };
  return withFragment(draft, { index: frame['output_index'], id: isKnown ? id : '', function: body });
}

/** A piece of a call, said the way chat completions say it: who owns it is the same question. */
function withFragment(draft: ResponseDraft, fragment: JsonObject): ResponseDraft {
  return { ...draft, drafts: addFragments(draft.drafts, [fragment]) };
}

const CALL_ID = 'call_id';

function concludeWith(draft: ResponseDraft, response: JsonObject, status: string): ResponseStep {
  const usage = readUsage(response, null) ?? draft.usage;
  if (status === 'failed' || status === 'cancelled' || response['error']) {
    return { kind: 'failed', draft: { ...draft, usage }, error: response['error'] ?? { message: `status ${status}` } };
  }
  const output = asObjects(response['output']);
  const reason = asText(asObject(response['incomplete_details'])?.['reason']);
  const finish = status === 'incomplete' || reason !== '' ? finishOfIncomplete(reason) : 'stop';
  return grown({ ...draft, output, finish, done: true, usage });
}

function finishOfIncomplete(reason: string): Finish {
  return reason === 'content_filter' ? 'content_filter' : 'length';
}

/** What an ended stream amounts to. Without its last event nothing in it may be used. */
export function concludeResponse(draft: ResponseDraft): Conclusion {
  const usage = draft.usage ?? UNKNOWN_USAGE;
  if (draft.finish === null) return { kind: 'cut', usage: { ...usage, complete: false } };
  const whole = wholeItems(draft);
  const { calls, ...said } = responseReply(draft);
  if (calls.some(({ name }) => name === '') || (whole === null && !areSound(draft.drafts))) {
    return { kind: 'malformed', usage };
  }
  const { refused, isCut } = readItems(whole ?? []);
  const label = isCut && draft.finish === 'stop' ? 'length' : draft.finish;
  const finish = refused || draft.refused ? 'content_filter' : finishOf(label, calls.length);
  return { kind: 'reply', finish, usage: credible(usage, { calls, ...said }), calls, ...said };
}

function finishOf(label: string, calls: number): Finish {
  if (label === 'length' || label === 'content_filter') return label;
  return calls > 0 ? 'tool_calls' : 'stop';
}

/** The draft as a message, whole or not. Reasoning of a stream that was cut has no item behind it and is not kept. */
export function responseReply(draft: ResponseDraft): ModelReply {
  const items = wholeItems(draft);
  if (items === null) {
    const calls = draft.drafts.calls.map(({ name, arguments: args, extra }) => ({
      id: asText(extra[CALL_ID]),
      name,
      arguments: args,
    }));
    return { text: draft.text, reasoning: draft.reasoning, calls, extra: {} };
  }
  const { text, calls } = readItems(items);
  return { text, reasoning: draft.reasoning || summaryOf(items), calls, extra: itemsToKeep(items) };
}

/** The items, where they have everything that was streamed; some gateways leave some out, or send none. */
function wholeItems({ items, output, drafts, text, finish }: ResponseDraft): readonly JsonObject[] | null {
  if (finish === null) return null;
  const mostCalls = Math.max(drafts.calls.length, readItems(items).calls.length);
  const covers = (list: readonly JsonObject[]) =>
    list.length > 0 && readItems(list).calls.length >= mostCalls && (text === '' || list.some(isMessage));
  return [output, items].find(covers) ?? null;
}

function summaryOf(items: readonly JsonObject[]): string {
  const parts = items.filter((item) => item['type'] === 'reasoning').flatMap((item) => asObjects(item['summary']));
  return parts.map((part) => asText(part['text'])).join('\n\n');
}
