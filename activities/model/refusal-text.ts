import { asArray, asObject, parseJson } from './json.ts';

const TEXT_FIELDS = new Set([
  'error',
  'errors',
  'message',
  'msg',
  'detail',
  'details',
  'reason',
  'title',
  'code',
  'type',
  'status',
  'metadata',
  'raw',
  'retryDelay',
]);
const DEPTH_MAX = 6;
const CHARS_MAX = 4_000;

/**
 * The words of an error body: messages, codes and types, also those nested in a string of JSON. Other
 * fields are left out, since some providers send the whole request back.
 */
export function refusalText(body: unknown): string {
  return collect(body, 0).join(' ').slice(0, CHARS_MAX);
}

/** The sentence for people in an error body: its first message, or all its words. */
export function firstSentence(body: unknown): string {
  const error = asObject(body);
  const inner = error?.['error'] ?? error?.['message'] ?? error?.['detail'];
  if (typeof inner === 'string') return inner;
  if (inner && inner !== body) return firstSentence(inner);
  return refusalText(body);
}

function collect(value: unknown, depth: number): string[] {
  if (depth > DEPTH_MAX) return [];
  if (typeof value === 'number') return [String(value)];
  if (typeof value === 'string') return words(value, depth);
  if (Array.isArray(value))
    return asArray(value)
      .slice(0, 10)
      .flatMap((item) => collect(item, depth + 1));
  return Object.entries(asObject(value) ?? {}).flatMap(([key, inner]) => {
    if (!TEXT_FIELDS.has(key)) return [];
    return key === 'retryDelay' ? [`retryDelay: ${String(inner)}`] : collect(inner, depth + 1);
  });
}

function words(text: string, depth: number): string[] {
  const nested = /^\s*[[{]/.test(text) ? parseJson(text) : undefined;
  return nested === undefined ? [text] : collect(nested, depth + 1);
}
