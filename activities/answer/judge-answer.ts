import { asObject } from '../model/json.ts';
import { jsonSchemaInput } from '../mcp/json-schema-input.ts';
import { fitInput, listFaults } from '../tools/parse-arguments.ts';
import type { JsonSchemaInput } from '../tools/define-tool.ts';
import type { OutputSchema } from '../store/schema.ts';
import { jsonIn } from './read-json.ts';

export type JudgedAnswer =
  | { readonly ok: true; readonly value: unknown }
  /** `faults`: sentences for the model, without a word of what it wrote. */
  | { readonly ok: false; readonly faults: string };

const inputs = new WeakMap<OutputSchema, JsonSchemaInput<Record<string, unknown>>>();

/** Judges a text by the schema as its author wrote it. What stands around valid JSON is no fault. */
export function judgeAnswer(text: string, schema: OutputSchema): JudgedAnswer {
  const input = inputs.get(schema) ?? jsonSchemaInput(schema);
  inputs.set(schema, input);
  const values = jsonIn(text);
  const objects = values.map(asObject).filter((value) => value !== null);
  const judged = objects.map((value) => fitInput(input, value));
  const fits = judged.find((each) => each.ok);
  if (fits?.ok) return { ok: true, value: fits.value };
  const [first] = judged;
  if (first && !first.ok) return { ok: false, faults: listFaults(first.faults) };
  return { ok: false, faults: values.length > 0 ? 'It must be a JSON object.' : 'There is no JSON object in it.' };
}
