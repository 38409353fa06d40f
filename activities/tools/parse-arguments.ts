import { canonicalJson } from '../store/hash.ts';
import type { Checked, Fault, Tool } from './define-tool.ts';
import { fitText } from './text.ts';

const MOST_FAULTS = 20;
const FAULT_TEXT_CHARS = 2_000;

/** `canonical` is the JSON the call is hashed and compared by: keys sorted, defaults not filled in. */
export type ParsedArguments =
  | { readonly ok: true; readonly args: unknown; readonly canonical: string }
  | { readonly ok: false; readonly text: string };

/** Turns the text that a model wrote into arguments. Whatever is wrong with it becomes a text for the model. */
export function parseArguments(tool: Tool, raw: string): ParsedArguments {
  try {
    const value = jsonObject(raw);
    if (typeof value === 'string') return fault(tool, value);
    return validated(tool, value);
  } catch (error) {
    return fault(tool, error instanceof RangeError ? 'They are nested too deeply.' : 'They could not be checked.');
  }
}

function validated(tool: Tool, value: object): ParsedArguments {
  const fitted = fitInput(tool.input, value);
  if (!fitted.ok) return fault(tool, listFaults(fitted.faults));
  return { ok: true, args: fitted.args, canonical: canonicalJson(fitted.value) };
}

/** `value` is what fits: as it was written, or without the nulls that models in strict mode send for what they leave out. */
export type Fitted =
  | { readonly ok: true; readonly args: unknown; readonly value: object }
  | { readonly ok: false; readonly faults: readonly Fault[] };

export function fitInput(input: Tool['input'], value: object): Fitted {
  const asWritten = check(input, value);
  if (asWritten.ok) return { ok: true, args: asWritten.args, value };
  for (const withoutNulls of [dropNulls(value, asWritten.faults), dropTopNulls(value)]) {
    const again = check(input, withoutNulls);
    if (again.ok) return { ok: true, args: again.args, value: withoutNulls };
  }
  return asWritten;
}

function check(input: Tool['input'], value: object): Checked<unknown> {
  if ('jsonSchema' in input) return input.check(value);
  const parsed = input.safeParse(value);
  if (parsed.success) return { ok: true, args: parsed.data };
  return { ok: false, faults: parsed.error.issues };
}

/** Without the fields that are null where a fault is. */
function dropNulls(value: object, faults: readonly Fault[]): object {
  const copy = structuredClone(value);
  for (const { path } of faults) {
    const parent = path.slice(0, -1).reduce<unknown>((inner, key) => fieldOf(inner, key), copy);
    const last = path.at(-1);
    if (last !== undefined && !Array.isArray(parent) && fieldOf(parent, last) === null) {
      delete (parent as Record<PropertyKey, unknown>)[last];
    }
  }
  return copy;
}

function dropTopNulls(value: object): object {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== null));
}

function fieldOf(value: unknown, key: PropertyKey): unknown {
  if (value === null || typeof value !== 'object' || !Object.hasOwn(value, key)) return undefined;
  return (value as Record<PropertyKey, unknown>)[key];
}

/** The object in the text, or a sentence that says why there is none. Blank stands for no arguments. */
function jsonObject(raw: string): object | string {
  if (raw.trim() === '') return {};
  let value: unknown;
  try {
    value = JSON.parse(raw);
  } catch {
    return 'They are not one whole JSON object. Check quotes and brackets, and send nothing before or after it.';
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  return `They must be a JSON object in braces, and this is ${Array.isArray(value) ? 'an array' : value === null ? 'null' : `a ${typeof value}`}.`;
}

/** The faults as lines, a limited number of them. */
export function listFaults(faults: readonly Fault[]): string {
  const lines = faults.slice(0, MOST_FAULTS).map(({ path, message }) => {
    const where = path.length === 0 ? '' : `${path.map(String).join('.')}: `;
    return `- ${where}${message}`;
  });
  return ['They do not fit its schema:', ...lines].join('\n');
}

function fault(tool: Tool, text: string): ParsedArguments {
  return {
    ok: false,
    text: fitText(
      `The call of ${tool.name} did not run, because of its arguments. ${text}\nCorrect them and call it again.`,
      FAULT_TEXT_CHARS,
    ),
  };
}
