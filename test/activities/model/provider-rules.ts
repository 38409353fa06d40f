import { asArray, asObject, asText, type JsonObject } from '../../../activities/model/json.ts';
import type { SchemaRules } from '../../../activities/model/lower-schema.ts';

const FORMATS = ['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'];
const TOP_BANS = ['anyOf', 'oneOf', 'allOf', 'enum', 'not', '$ref'];
const STRICT_WORDS = [
  ...[
    'type',
    'title',
    'description',
    'enum',
    'pattern',
    'format',
    'multipleOf',
    'minimum',
    'maximum',
    'exclusiveMinimum',
  ],
  ...[
    'exclusiveMaximum',
    'minItems',
    'maxItems',
    'items',
    'properties',
    'required',
    'additionalProperties',
    'anyOf',
    '$ref',
    '$defs',
  ],
];

/** What a provider would say about the parameters of a function; empty if it takes them. Written from its refusals. */
export function accepts(schema: JsonObject, rules: SchemaRules): string {
  if (schema.type !== 'object' || !asObject(schema.properties)) return 'the top must be an object with properties';
  if (rules === 'plain') return '';
  const banned = TOP_BANS.find((word) => word in schema);
  if (banned) return `${banned} at the top`;
  return visit(schema, schema, rules === 'openai_strict');
}

function visit(part: unknown, root: JsonObject, strict: boolean): string {
  const node = asObject(part);
  if (!node) return 'no schema object';
  const fault = strict ? strictFault(node) : looseFault(node);
  if (fault) return fault;
  if (
    typeof node.$ref === 'string' &&
    node.$ref !== '#' &&
    !asObject(asObject(root.$defs)?.[node.$ref.slice('#/$defs/'.length)])
  ) {
    return `${node.$ref} leads nowhere`;
  }
  const parts = [
    ...Object.values(asObject(node.properties) ?? {}),
    ...Object.values(asObject(node.$defs) ?? {}),
    ...asArray(node.anyOf),
    ...('items' in node ? [node.items] : []),
  ];
  return parts.map((inner) => visit(inner, root, strict)).find((found) => found !== '') ?? '';
}

function looseFault(node: JsonObject): string {
  if (node.format !== undefined && !FORMATS.includes(asText(node.format))) return `format ${asText(node.format)}`;
  const additional = asObject(node.additionalProperties);
  if (additional && Object.keys(additional).length === 0) return 'additionalProperties {}';
  if ((node.type === 'array' || asArray(node.type).includes('array')) && !asObject(node.items))
    return 'array without items';
  if ('definitions' in node || '$schema' in node) return 'an old dialect';
  return typeof node.exclusiveMinimum === 'boolean' ? 'a flag beside a bound' : '';
}

function strictFault(node: JsonObject): string {
  const unknown = Object.keys(node).find((word) => !STRICT_WORDS.includes(word));
  if (unknown) return `${unknown} is not permitted`;
  if ('$ref' in node) return Object.keys(node).length === 1 ? '' : '$ref with siblings';
  if (!('type' in node) && !('anyOf' in node)) return 'no type';
  if (node.type === 'object' || asArray(node.type).includes('object')) {
    if (node.additionalProperties !== false) return 'additionalProperties must be false';
    const names = Object.keys(asObject(node.properties) ?? {});
    if (JSON.stringify(names) !== JSON.stringify(node.required)) return 'every field must be required';
  }
  return looseFault(node);
}
