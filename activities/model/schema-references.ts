import { asObject, type JsonObject } from './json.ts';
import { isSchema, type Schema } from './subschemas.ts';

/** Why a schema can't be said by a provider's rules: a sentence for the operator. */
export class CantExpress extends Error {}

/** The references of one schema. Each target is lowered once and moves to `$defs`, so recursion stays recursion. */
export class References {
  readonly #root: JsonObject;
  readonly #lower: (schema: Schema) => JsonObject;
  readonly #names = new Map<string, string>();
  readonly #definitions: Record<string, JsonObject> = {};

  constructor(root: JsonObject, lower: (schema: Schema, references: References) => JsonObject) {
    this.#root = root;
    this.#lower = (schema) => lower(schema, this);
  }

  /** The reference to write instead of this one. */
  lowered(reference: string): string {
    if (reference === '#') return '#';
    const known = this.#names.get(reference);
    if (known !== undefined) return `#/$defs/${known}`;
    const target = this.#find(reference);
    const name = this.#freeName(reference);
    this.#names.set(reference, name);
    this.#definitions[name] = this.#lower(target);
    return `#/$defs/${name}`;
  }

  /** What a reference stands for, through as many others as there are. */
  resolve(schema: Schema, seen: ReadonlySet<string> = new Set()): Schema {
    const reference = typeof schema === 'boolean' ? undefined : schema.$ref;
    if (typeof reference !== 'string') return schema;
    if (seen.has(reference)) throw new CantExpress(`the reference ${reference} leads only to itself`);
    return this.resolve(this.#find(reference), new Set([...seen, reference]));
  }

  get definitions(): { readonly $defs?: Readonly<Record<string, JsonObject>> } {
    return Object.keys(this.#definitions).length === 0 ? {} : { $defs: this.#definitions };
  }

  #find(reference: string): Schema {
    if (reference === '#') return this.#root;
    if (!reference.startsWith('#/')) throw new CantExpress(`the reference ${reference} leads out of the schema`);
    let found: unknown = this.#root;
    for (const key of reference.slice(2).split('/').map(unescaped)) {
      found = Array.isArray(found)
        ? found[Number(key)]
        : Object.hasOwn(asObject(found) ?? {}, key)
          ? asObject(found)?.[key]
          : undefined;
    }
    if (!isSchema(found)) throw new CantExpress(`the reference ${reference} leads nowhere`);
    return found;
  }

  #freeName(reference: string): string {
    const last =
      unescaped(reference.slice(reference.lastIndexOf('/') + 1))
        .replace(/[^a-zA-Z0-9_-]/g, '_')
        .slice(0, 48) || 'def';
    let name = last;
    for (let n = 2; Object.hasOwn(this.#definitions, name) || [...this.#names.values()].includes(name); n++)
      name = `${last}_${n}`;
    return name;
  }
}

function unescaped(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return part;
  }
}
