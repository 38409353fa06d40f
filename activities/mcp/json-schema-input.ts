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

/** Each dialect means different things by the same words; older ones than these are translated first. */
function compile(schema: Schema): ValidateFunction {
  const { $schema, ...rest } = schema;
  const dialect = typeof $schema === 'string' ? $schema : '2020-12';
  const attempts = [
    () =>
      (dialect.includes('2020-12')
        ? new Ajv2020(OPTIONS)
        : dialect.includes('2019-09')
          ? new Ajv2019(OPTIONS)
          : new Ajv(OPTIONS)
      ).compile(rest),
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

function faultOf({ instancePath, message, params }: ErrorObject): Fault {
  const path = instancePath
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
  const { additionalProperty, allowedValues } = params as { additionalProperty?: unknown; allowedValues?: unknown };
  const detail = additionalProperty ?? allowedValues;
  return { path, message: `${message ?? 'does not fit'}${detail === undefined ? '' : `: ${JSON.stringify(detail)}`}` };
}
