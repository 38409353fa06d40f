import { asObject, type JsonObject } from './json.ts';

/** A JSON Schema: an object of keywords, or `true` for anything and `false` for nothing. */
export type Schema = JsonObject | boolean;

const ONE = [
  'not',
  'if',
  'then',
  'else',
  'contains',
  'propertyNames',
  'additionalProperties',
  'additionalItems',
  'unevaluatedProperties',
  'unevaluatedItems',
  'items',
];
const LISTS = ['anyOf', 'oneOf', 'allOf', 'prefixItems', 'items'];
const MAPS = ['properties', 'patternProperties', 'dependentSchemas', 'dependencies', 'definitions', '$defs'];

export function isSchema(value: unknown): value is Schema {
  return typeof value === 'boolean' || asObject(value) !== null;
}

/** A copy with each schema directly inside replaced. What is no schema, such as an enum's value, is not looked into. */
export function mapSubschemas(schema: JsonObject, map: (inner: Schema) => unknown): Record<string, unknown> {
  const copy: Record<string, unknown> = { ...schema };
  const each = (value: unknown) => (isSchema(value) ? map(value) : value);
  for (const keyword of ONE) if (isSchema(schema[keyword])) copy[keyword] = each(schema[keyword]);
  for (const keyword of LISTS) if (Array.isArray(schema[keyword])) copy[keyword] = schema[keyword].map(each);
  for (const keyword of MAPS) {
    const inner = asObject(schema[keyword]);
    if (inner) copy[keyword] = Object.fromEntries(Object.entries(inner).map(([key, value]) => [key, each(value)]));
  }
  return copy;
}
