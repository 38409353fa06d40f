import { asArray, asObject, asText, type JsonObject, parseJson } from './json.ts';

/** A tool call while it streams. */
export interface CallDraft {
  readonly id: string;
  readonly index: number | null;
  readonly name: string;
  readonly arguments: string;
  /** Fields beside the standard ones, such as signatures. */
  readonly extra: JsonObject;
}

/** The calls of one message so far; `ambiguous` once a fragment could belong to more than one of them. */
export interface CallDrafts {
  readonly calls: readonly CallDraft[];
  readonly ambiguous: boolean;
}

export const NO_CALLS: CallDrafts = { calls: [], ambiguous: false };

type Owner = { readonly at: number } | 'new' | 'ambiguous' | 'nobody';

/** Adds the `tool_calls` of one delta. Index, id and name may each be missing, wrong or repeated. */
export function addFragments(drafts: CallDrafts, fragments: unknown): CallDrafts {
  const before = drafts.calls.length;
  return asArray(fragments).reduce<CallDrafts>((result, value) => {
    const fragment = readFragment(value);
    return fragment ? addFragment(result, fragment, before) : result;
  }, drafts);
}

/** No half and no nameless call may run: true where the drafts can be trusted as a whole. */
export function areSound({ calls, ambiguous }: CallDrafts): boolean {
  return !ambiguous && calls.every((call) => call.name !== '');
}

function readFragment(value: unknown): CallDraft | null {
  const fragment = asObject(value);
  if (!fragment) return null;
  const { id, index, type: _type, function: body, ...extra } = fragment;
  const call = asObject(body);
  const args = call?.['arguments'];
  return {
    id: asText(id).trim(),
    index: typeof index === 'number' ? index : null,
    name: asText(call?.['name']).trim(),
    arguments: typeof args === 'object' && args !== null ? JSON.stringify(args) : asText(args),
    extra,
  };
}

function addFragment({ calls, ambiguous }: CallDrafts, fragment: CallDraft, before: number): CallDrafts {
  const owner = ownerOf(calls, fragment, before);
  if (owner === 'nobody') return { calls, ambiguous };
  if (owner === 'ambiguous') return { calls, ambiguous: true };
  if (owner === 'new') return { calls: [...calls, fragment], ambiguous };
  const glued = isGlued(calls[owner.at] as CallDraft, fragment);
  return {
    calls: calls.map((call, n) => (n === owner.at ? joined(call, fragment) : call)),
    ambiguous: ambiguous || glued,
  };
}

/** `before` is the number of calls before this delta: entries of one delta are never pieces of each other. */
function ownerOf(calls: readonly CallDraft[], fragment: CallDraft, before: number): Owner {
  if (fragment.id !== '') {
    const known = calls.findLastIndex((call) => call.id === fragment.id);
    if (known >= 0) return repeatsId(calls[known] as CallDraft, fragment) ? 'new' : { at: known };
    const late = fragment.name === '' && fragment.index !== null;
    const waiting = late ? calls.findLastIndex((call) => call.id === '' && call.index === fragment.index) : -1;
    return waiting >= 0 ? { at: waiting } : 'new';
  }
  const at = placeOf(calls, fragment);
  if (at < 0) {
    if (fragment.name !== '') return 'new';
    return fragment.arguments.trim() === '' ? 'nobody' : 'ambiguous';
  }
  if (fragment.name === '') return { at };
  return namedOwner(calls[at] as CallDraft, fragment, at, at >= before);
}

/** A fragment without an id but with a name: the rest of a name, the name again, or another call. */
function namedOwner(call: CallDraft, fragment: CallDraft, at: number, sameDelta: boolean): Owner {
  if (call.name === '') return { at };
  const otherIndex = fragment.index !== null && fragment.index !== call.index;
  if (sameDelta || otherIndex || isComplete(call.arguments)) return 'new';
  if (call.arguments === '' && fragment.index !== null) return { at };
  if (call.name === fragment.name) return { at };
  return call.arguments === '' ? 'new' : 'ambiguous';
}

/** Another call under an id that is taken: named, and the first one is finished or stands at another index. */
function repeatsId(call: CallDraft, fragment: CallDraft): boolean {
  if (fragment.name === '') return false;
  const otherIndex = call.index !== null && fragment.index !== null && call.index !== fragment.index;
  return (otherIndex && call.arguments === '') || isGlued(call, fragment);
}

/** A second JSON object after a whole one. */
function isGlued(call: CallDraft, fragment: CallDraft): boolean {
  return fragment.arguments.trimStart().startsWith('{') && isComplete(call.arguments);
}

/** The call a fragment without a usable id continues: the one with its index, else the one being streamed. */
function placeOf(calls: readonly CallDraft[], { index }: CallDraft): number {
  const last = calls.length - 1;
  const byIndex = index === null ? -1 : calls.findLastIndex((call) => call.index === index);
  if (byIndex < 0 || byIndex === last) return last;
  const finished = isComplete(calls[byIndex]?.arguments ?? '');
  return finished && !isComplete(calls[last]?.arguments ?? '') ? last : byIndex;
}

function joined(call: CallDraft, fragment: CallDraft): CallDraft {
  const repeatsName = fragment.name === call.name || call.arguments !== '';
  return {
    id: call.id || fragment.id,
    index: call.index ?? fragment.index,
    name: repeatsName ? call.name : call.name + fragment.name,
    arguments: call.arguments + fragment.arguments,
    extra: { ...call.extra, ...fragment.extra },
  };
}

function isComplete(text: string): boolean {
  return text.trimEnd().endsWith('}') && asObject(parseJson(text)) !== null;
}
