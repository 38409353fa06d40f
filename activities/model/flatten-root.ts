import { canonicalJson } from '../store/hash.ts';
import { asArray, asObject, type JsonObject } from './json.ts';
import { CantExpress, type References } from './schema-references.ts';
import type { Schema } from './subschemas.ts';

interface Flat {
  readonly properties: Readonly<Record<string, Schema>>;
  readonly required: readonly string[];
  /** Whether it says that nothing else may be there. */
  readonly closed: boolean;
  readonly open: unknown;
}

/**
 * A root that is one plain object, as providers want it. Alternatives become one object that has the fields of all
 * and requires what all require: it allows more than the original, which still checks the arguments.
 */
export function flattenRoot(root: JsonObject, references: References): JsonObject {
  const flat = flatten(root, references, new Set());
  if (flat === null) throw new CantExpress('its arguments are no object');
  const { properties, required, closed, open } = flat;
  return {
    type: 'object',
    ...(typeof root.description === 'string' ? { description: root.description } : {}),
    properties,
    ...(required.length > 0 ? { required } : {}),
    ...(closed ? { additionalProperties: false } : open === undefined ? {} : { additionalProperties: open }),
    ...(root.patternProperties === undefined ? {} : { patternProperties: root.patternProperties }),
  };
}

/** Null where no object can fit. */
function flatten(schema: Schema, references: References, path: ReadonlySet<Schema>): Flat | null {
  const node = references.resolve(schema);
  if (path.has(node)) throw new CantExpress('an alternative of its arguments contains itself');
  const within = new Set([...path, node]);
  if (typeof node === 'boolean') return node ? { properties: {}, required: [], closed: false, open: undefined } : null;
  if (!mayBeObject(node)) return null;
  let flat: Flat = {
    properties: (asObject(node.properties) ?? {}) as Record<string, Schema>,
    required: asArray(node.required).filter((name) => typeof name === 'string'),
    closed: node.additionalProperties === false,
    open: node.additionalProperties,
  };
  for (const part of asArray(node.allOf)) {
    const inner = flatten(part as Schema, references, within);
    if (inner === null) return null;
    flat = both(flat, inner);
  }
  for (const alternatives of [node.anyOf, node.oneOf]) {
    if (!Array.isArray(alternatives)) continue;
    const fitting = alternatives
      .map((part) => flatten(part as Schema, references, within))
      .filter((part) => part !== null);
    if (fitting.length === 0) return null;
    flat = both(flat, fitting.reduce(either));
  }
  return flat;
}

function mayBeObject({ type }: JsonObject): boolean {
  return type === undefined || (Array.isArray(type) ? type.includes('object') : type === 'object');
}

function both(a: Flat, b: Flat): Flat {
  return {
    properties: merged(a, b, 'allOf'),
    required: [...new Set([...a.required, ...b.required])],
    closed: a.closed || b.closed,
    open: a.open ?? b.open,
  };
}

function either(a: Flat, b: Flat): Flat {
  return {
    properties: merged(a, b, 'anyOf'),
    required: a.required.filter((name) => b.required.includes(name)),
    closed: a.closed && b.closed,
    open: a.closed ? b.open : a.open,
  };
}

function merged(a: Flat, b: Flat, how: 'allOf' | 'anyOf'): Readonly<Record<string, Schema>> {
  const all = new Map(Object.entries(a.properties));
  for (const [name, schema] of Object.entries(b.properties)) {
    const other = all.get(name);
    const isSame = other === undefined || canonicalJson(other) === canonicalJson(schema);
    all.set(name, isSame ? schema : { [how]: [other, schema] });
  }
  return Object.fromEntries(all);
}
