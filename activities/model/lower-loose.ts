import { asArray, asText, type JsonObject } from './json.ts';
import type { References } from './schema-references.ts';
import { mapSubschemas, type Schema } from './subschemas.ts';

/** Formats that OpenAI knows; another makes it refuse the whole request. */
const FORMATS = new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid']);
const DROPPED = ['$defs', 'definitions', '$anchor', '$dynamicAnchor', '$vocabulary'];

/** A part of a schema for function calling that is not strict: nearly everything is known, some words are not. */
export function lowerLoose(schema: Schema, references: References): JsonObject {
  if (typeof schema === 'boolean') return schema ? {} : { not: {} };
  if (typeof schema.$ref === 'string') {
    const described = typeof schema.description === 'string' ? { description: schema.description } : {};
    return { $ref: references.lowered(schema.$ref), ...described };
  }
  const copy = mapSubschemas(withoutDefinitions(schema), (inner) => lowerLoose(inner, references));
  if (isEmpty(copy.additionalProperties)) copy.additionalProperties = true;
  else if (schema.additionalProperties === false) copy.additionalProperties = false;
  if (Array.isArray(copy.prefixItems)) {
    copy.items = tupleItems(copy.prefixItems as JsonObject[]);
    delete copy.prefixItems;
  } else if (includesArray(copy.type) && copy.items === undefined) {
    copy.items = {};
  }
  return withKnownFormat(copy);
}

/** A place in a tuple can't be told, so each may hold what any may hold. */
export function tupleItems(items: readonly JsonObject[]): JsonObject {
  return items.length === 1 ? (items[0] ?? {}) : { anyOf: items };
}

export function withKnownFormat(schema: JsonObject): JsonObject {
  const { format, ...rest } = schema;
  if (format === undefined || FORMATS.has(asText(format))) return schema;
  return noted(rest, `Format: ${asText(format).slice(0, 100)}.`);
}

/** What a keyword can't say any more, the description says. */
export function noted(schema: JsonObject, note: string): JsonObject {
  return { ...schema, description: [asText(schema.description).trim(), note].filter((text) => text !== '').join(' ') };
}

function withoutDefinitions(schema: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(schema).filter(([keyword]) => !DROPPED.includes(keyword)));
}

function isEmpty(schema: unknown): boolean {
  return typeof schema === 'object' && schema !== null && Object.keys(schema).length === 0;
}

function includesArray(type: unknown): boolean {
  return type === 'array' || asArray(type).includes('array');
}
