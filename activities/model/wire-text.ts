import { asObject, parseJson } from './json.ts';

/** A name that the model made up may break the rules of the field it came in. */
export function wireName(name: string): string {
  return name.replace(/[^\w-]/g, '_').slice(0, 64) || 'unnamed';
}

/** Arguments as a JSON object, since many gateways parse them again; what is none stays readable inside one. */
export function wireArguments(text: string): string {
  if (text.trim() === '' || text.trim() === 'null') return '{}';
  return asObject(parseJson(text)) ? clean(text) : JSON.stringify({ unparsed: clean(text) });
}

/** Empty content is refused by some providers. */
export function filled(text: string): string {
  return text.trim() === '' ? '(empty)' : clean(text);
}

/** Half of a surrogate pair is legal in a JavaScript string and refused by providers. */
export function clean(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\uFFFD');
}
