import { POLICY } from '../../workflows/core/policy.ts';
import { compileFault } from '../mcp/json-schema-input.ts';
import { asObject } from '../model/json.ts';

export type UsableSchema =
  | { readonly ok: true; readonly schema: Readonly<Record<string, unknown>> }
  /** A sentence that says what to do. */
  | { readonly ok: false; readonly why: string };

/** Whether answers can be asked for, and judged, by this schema. */
export function usableSchema(value: unknown): UsableSchema {
  const schema = asObject(value);
  const { schemaChars } = POLICY.structuredOutput;
  if (!schema) return refused('it must be a JSON Schema, as a JSON object');
  if (schema.type !== 'object') return refused('its root must say "type": "object"; put other values into a property');
  const { length } = JSON.stringify(schema);
  if (length > schemaChars) return refused(`it has ${length} characters, and ${schemaChars} are the most`);
  const fault = compileFault(schema);
  return fault === null ? { ok: true, schema } : refused(`it is no valid JSON Schema: ${fault}`);
}

function refused(why: string): UsableSchema {
  return { ok: false, why: `The output schema can’t be used: ${why}.` };
}
