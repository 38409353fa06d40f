import { readFileSync } from 'node:fs';
import { SetupError } from '../../worker/setup-error.ts';

/** A JSON Schema from a file; whether it can be used is judged where the job is taken in. */
export function readSchema(file: string): Record<string, unknown> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    throw new SetupError(`There is no file ${file} to read the output schema from; check --output-schema.`);
  }
  const schema = parse(text);
  if (typeof schema === 'object' && schema !== null && !Array.isArray(schema)) return schema as Record<string, unknown>;
  throw new SetupError(`The file ${file} holds no JSON object; --output-schema wants a JSON Schema.`);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}
