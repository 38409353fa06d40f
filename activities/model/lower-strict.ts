import { asArray, asObject, asText, type JsonObject } from './json.ts';
import { noted, tupleItems, withKnownFormat } from './lower-loose.ts';
import { nullable } from './nullable.ts';
import { CantExpress, type References } from './schema-references.ts';
import { isSchema, type Schema } from './subschemas.ts';

/** What strict mode knows; limits on lengths and counts that it does not know are left to the original. */
const KEPT = [
  'title',
  'description',
  'format',
  'multipleOf',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
];
/** Fields that only these words declare could not be sent any more. */
const HIDING = ['patternProperties', 'dependentSchemas', 'if', 'then', 'else'];
const NOTE_CHARS = 200;

/** A part of a schema for strict mode: closed objects, every field required, every part of a known type. */
export function lowerStrict(schema: Schema, references: References): JsonObject {
  if (typeof schema === 'boolean') throw new CantExpress('a part may be anything');
  if (typeof schema.$ref === 'string') return { $ref: references.lowered(schema.$ref) };
  refuseHidden(schema);
  const lowered = byKind(schema, references);
  if (schema.default === undefined) return lowered;
  return noted(lowered, `Default: ${JSON.stringify(schema.default).slice(0, NOTE_CHARS)}.`);
}

export function refuseHidden(schema: JsonObject): void {
  const hiding = HIDING.find((keyword) => keyword in schema);
  if (hiding) throw new CantExpress(`it uses ${hiding}`);
}

function byKind(schema: JsonObject, references: References): JsonObject {
  if (Array.isArray(schema.allOf)) return lowerAllOf(schema, schema.allOf, references);
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(alternatives)) return lowerAnyOf(schema, alternatives, references);
  if ('const' in schema) return lowerEnum(schema, [schema.const]);
  if (Array.isArray(schema.enum)) return lowerEnum(schema, schema.enum);
  const type = schema.type ?? (schema.properties ? 'object' : schema.items ? 'array' : undefined);
  if (Array.isArray(type)) return lowerTypes(schema, type, references);
  switch (type) {
    case 'object':
      return { ...kept(schema), ...lowerObject(schema, references) };
    case 'array':
      return { ...kept(schema), ...lowerArray(schema, references) };
    case 'string':
    case 'number':
    case 'integer':
    case 'boolean':
    case 'null':
      return { type, ...kept(schema) };
    default:
      throw new CantExpress('a part may be anything');
  }
}

export function lowerObject(schema: JsonObject, references: References, isRoot = false): JsonObject {
  const given = asObject(schema.properties) ?? {};
  const open = schema.additionalProperties ?? schema.unevaluatedProperties;
  if (open !== undefined && open !== false) throw new CantExpress('an object may have fields of any name');
  if (!isRoot && open === undefined && Object.keys(given).length === 0)
    throw new CantExpress('an object may have any fields');
  const required = asArray(schema.required);
  if (required.some((name) => !Object.hasOwn(given, String(name))))
    throw new CantExpress('a required field is not described');
  const properties = Object.entries(given)
    .filter(([name, inner]) => isSchema(inner) && (inner !== false || required.includes(name)))
    .map(([name, inner]) => {
      const lowered = lowerStrict(inner as Schema, references);
      return [name, required.includes(name) ? lowered : nullable(lowered)] as const;
    });
  return {
    type: 'object',
    properties: Object.fromEntries(properties),
    required: properties.map(([name]) => name),
    additionalProperties: false,
  };
}

function lowerArray(schema: JsonObject, references: References): JsonObject {
  const tuple = Array.isArray(schema.prefixItems) ? tupleItems(schema.prefixItems as JsonObject[]) : schema.items;
  if (!isSchema(tuple)) throw new CantExpress('a list may hold anything');
  const { minItems, maxItems } = schema;
  return {
    type: 'array',
    items: lowerStrict(tuple, references),
    ...(minItems === undefined ? {} : { minItems }),
    ...(maxItems === undefined ? {} : { maxItems }),
  };
}

function lowerAllOf(schema: JsonObject, parts: readonly unknown[], references: References): JsonObject {
  const others = ['type', 'properties', 'anyOf', 'oneOf', 'enum', 'const', 'items'].some(
    (keyword) => keyword in schema,
  );
  const [only] = parts;
  if (others || parts.length !== 1 || !isSchema(only)) throw new CantExpress('it uses allOf');
  return lowerStrict(only, references);
}

function lowerAnyOf(schema: JsonObject, parts: readonly unknown[], references: References): JsonObject {
  const others = ['properties', 'enum', 'const', 'items'].find((keyword) => keyword in schema);
  if (others || (schema.anyOf && schema.oneOf)) throw new CantExpress('it mixes alternatives with other rules');
  const anyOf = parts.filter(isSchema).map((part) => {
    const typed = schema.type !== undefined && typeof part === 'object' && !('type' in part) && !('$ref' in part);
    return lowerStrict(typed ? { type: schema.type, ...part } : part, references);
  });
  const description = asText(schema.description);
  return { ...(description === '' ? {} : { description }), anyOf };
}

function lowerEnum(schema: JsonObject, values: readonly unknown[]): JsonObject {
  const types = [...new Set(values.map(scalarType))];
  const { format: _, ...rest } = kept(schema);
  return { ...rest, type: types.length === 1 ? types[0] : types, enum: values };
}

function scalarType(value: unknown): string {
  if (value === null) return 'null';
  if (typeof value === 'object') throw new CantExpress('a value to choose is no plain value');
  return typeof value;
}

/** Several types at once: plain ones may stay together, objects and lists need their own rules. */
function lowerTypes(schema: JsonObject, types: readonly unknown[], references: References): JsonObject {
  if (types.length === 1) return lowerStrict({ ...schema, type: types[0] }, references);
  if (!types.includes('object') && !types.includes('array')) return { ...kept(schema), type: types };
  const { description, ...rest } = schema;
  const anyOf = types.map((type) => lowerStrict({ ...rest, type }, references));
  return { ...(typeof description === 'string' ? { description } : {}), anyOf };
}

function kept(schema: JsonObject): JsonObject {
  const known = Object.fromEntries(
    KEPT.filter((keyword) => keyword in schema).map((keyword) => [keyword, schema[keyword]]),
  );
  // Its patterns know no look-around.
  const pattern =
    typeof schema.pattern === 'string' && !schema.pattern.includes('(?') ? { pattern: schema.pattern } : {};
  return withKnownFormat({ ...known, ...pattern });
}
