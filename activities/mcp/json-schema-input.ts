import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { upgradeSchema } from '../model/upgrade-schema.ts';
import { storableDeep } from '../store/hash.ts';
import type { Checked, Fault, JsonSchemaInput } from '../tools/define-tool.ts';

type Schema = Readonly<Record<string, unknown>>;

/** Schemas are strangers' texts: unknown words are ignored, and `format` is an annotation, as the standard has it. */
const OPTIONS: Options = {
  strict: false,
  allErrors: true,
  validateFormats: false,
  validateSchema: false,
  addUsedSchema: false,
  meta: false,
  logger: false,
};

/**
 * Arguments checked by the schema as its author wrote it, whatever a provider is shown of it. A schema that can't be
 * compiled checks nothing: the server checks for itself.
 */
export function jsonSchemaInput(schema: Schema): JsonSchemaInput<Record<string, unknown>> {
  let validate: ValidateFunction | null = null;
  return {
    jsonSchema: storableDeep({ ...schema, type: 'object' }),
    check(value): Checked<Record<string, unknown>> {
      validate ??= compile(schema);
      if (validate(value)) return { ok: true, args: value as Record<string, unknown> };
      return { ok: false, faults: (validate.errors ?? []).map(faultOf) };
    },
  };
}

/** Why answers can't be judged by this schema: what is wrong with it by its own dialect; null where nothing is. */
export function compileFault(schema: Schema): string | null {
  const { ajv, rest } = dialectOf(schema, { ...OPTIONS, meta: true, validateSchema: true });
  try {
    ajv.compile(rest);
    return null;
  } catch (error) {
    return firstLine((error as Error).message);
  }
}

/** An error of ajv quotes the schema, which is the caller's own. */
function firstLine(message: string): string {
  return (message.split('\n')[0] ?? '').slice(0, 300);
}

/** Each dialect means different things by the same words; older ones than these are translated first. */
function compile(schema: Schema): ValidateFunction {
  const { ajv, rest } = dialectOf(schema, OPTIONS);
  const attempts = [
    () => ajv.compile(rest),
    () => new Ajv2020(OPTIONS).compile(upgradeSchema(rest)),
    () => new Ajv(OPTIONS).compile(rest),
  ];
  for (const attempt of attempts) {
    try {
      return attempt();
    } catch {
      // the next one may understand it
    }
  }
  return new Ajv(OPTIONS).compile({ type: 'object' });
}

function dialectOf({ $schema, ...rest }: Schema, options: Options): { readonly ajv: Ajv; readonly rest: Schema } {
  const dialect = typeof $schema === 'string' ? $schema : '2020-12';
  if (dialect.includes('2020-12')) return { ajv: new Ajv2020(options), rest };
  return { ajv: dialect.includes('2019-09') ? new Ajv2019(options) : new Ajv(options), rest };
}

function faultOf({ instancePath, message, params }: ErrorObject): Fault {
  const path = instancePath
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
  const { additionalProperty, allowedValues } = params as { additionalProperty?: unknown; allowedValues?: unknown };
  const detail = additionalProperty ?? allowedValues;
  return { path, message: `${message ?? 'does not fit'}${detail === undefined ? '' : `: ${JSON.stringify(detail)}`}` };
}
