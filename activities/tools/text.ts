import { storable } from '../store/hash.ts';

/** Whether a text can be stored, and written to a file, exactly as it is. */
export function isWellFormed(text: string): boolean {
  return text.isWellFormed();
}

/** The first characters of a text; never ends inside a surrogate pair. `chars` counts UTF-16 units. */
export function firstChars(text: string, chars: number): string {
  if (text.length <= chars) return text;
  return text.slice(0, isHighSurrogate(text.charCodeAt(chars - 1)) ? chars - 1 : Math.max(0, chars));
}

/** The last characters of a text; never starts inside a surrogate pair. */
export function lastChars(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const start = text.length - Math.max(0, chars);
  return text.slice(isHighSurrogate(text.charCodeAt(start - 1)) ? start + 1 : start);
}

/** Makes any text fit a result: storable, head and tail kept, with a line that says what is missing. */
export function fitText(text: string, chars: number): string {
  const clean = storable(text);
  if (clean.length <= chars) return clean;
  const gap = `\n[... ${clean.length - chars} or more characters left out here ...]\n`;
  const room = Math.max(0, chars - gap.length);
  const head = Math.ceil(room / 2);
  return firstChars(`${firstChars(clean, head)}${gap}${lastChars(clean, room - head)}`, chars);
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
