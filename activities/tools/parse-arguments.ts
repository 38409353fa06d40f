import type { ZodError } from 'zod';
import { canonicalJson } from '../store/hash.ts';
import type { Tool } from './define-tool.ts';
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
  const asWritten = tool.input.safeParse(value);
  if (asWritten.success) return { ok: true, args: asWritten.data, canonical: canonicalJson(value) };
  // Models in strict mode send null for what they leave out.
  const withoutNulls = Object.fromEntries(Object.entries(value).filter(([, field]) => field !== null));
  const again = tool.input.safeParse(withoutNulls);
  if (again.success) return { ok: true, args: again.data, canonical: canonicalJson(withoutNulls) };
  return fault(tool, faultsOf(asWritten.error));
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

function faultsOf(error: ZodError): string {
  const faults = error.issues.slice(0, MOST_FAULTS).map(({ path, message }) => {
    const where = path.length === 0 ? '' : `${path.map(String).join('.')}: `;
    return `- ${where}${message}`;
  });
  return ['They do not fit its schema:', ...faults].join('\n');
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
