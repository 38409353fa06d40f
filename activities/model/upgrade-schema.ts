import { asObject, type JsonObject } from './json.ts';
import { mapSubschemas, type Schema } from './subschemas.ts';

/** Older dialects (draft 4 to 7) in the words of 2020-12. `definitions` stay where the references look for them. */
export function upgradeSchema(schema: JsonObject): JsonObject {
  const copy = mapSubschemas(schema, (inner: Schema) => (typeof inner === 'boolean' ? inner : upgradeSchema(inner)));
  for (const keyword of ['$schema', '$id', 'id', '$comment'])
    if (typeof copy[keyword] === 'string') delete copy[keyword];
  bound(copy, 'exclusiveMinimum', 'minimum');
  bound(copy, 'exclusiveMaximum', 'maximum');
  if (Array.isArray(copy.items)) {
    copy.prefixItems = copy.items;
    delete copy.items;
    if ('additionalItems' in copy) copy.items = copy.additionalItems;
  }
  delete copy.additionalItems;
  // Draft 3 wrote it into the property.
  if ('required' in copy && !Array.isArray(copy.required)) delete copy.required;
  dependencies(copy);
  return copy;
}

/** Draft 4: a flag beside the bound. */
function bound(copy: Record<string, unknown>, flag: string, limit: string): void {
  if (typeof copy[flag] !== 'boolean') return;
  if (copy[flag] && typeof copy[limit] === 'number') {
    copy[flag] = copy[limit];
    delete copy[limit];
  } else {
    delete copy[flag];
  }
}

function dependencies(copy: Record<string, unknown>): void {
  const mixed = asObject(copy.dependencies);
  if (!mixed) return;
  delete copy.dependencies;
  const entries = Object.entries(mixed);
  const lists = entries.filter(([, value]) => Array.isArray(value));
  const schemas = entries.filter(([, value]) => !Array.isArray(value));
  if (lists.length > 0) copy.dependentRequired = Object.fromEntries(lists);
  if (schemas.length > 0) copy.dependentSchemas = Object.fromEntries(schemas);
}
