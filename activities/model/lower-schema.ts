import type { StoredTool } from '../store/schema.ts';
import { flattenRoot } from './flatten-root.ts';
import { asArray, asObject, type JsonObject } from './json.ts';
import { lowerLoose } from './lower-loose.ts';
import { lowerObject, lowerStrict, refuseHidden } from './lower-strict.ts';
import { CantExpress, References } from './schema-references.ts';
import { upgradeSchema } from './upgrade-schema.ts';

/**
 * What a provider takes as the parameters of a function.
 * `plain`: any JSON Schema that is an object. `openai`: one plain object at the root and known words.
 * `openai_strict`: the same in strict mode where a schema can be said in it, as `openai` where it can't.
 */
export type SchemaRules = 'openai' | 'openai_strict' | 'plain';

export type Lowered =
  | { readonly ok: true; readonly schema: JsonObject; readonly strict: boolean }
  | { readonly ok: false; readonly why: string };

/** Past this, a schema costs more tokens in every request than its tool can be worth. */
const MOST_CHARS = 100_000;
/** Of strict mode, as OpenAI documents them. */
const STRICT = { levels: 10, properties: 5_000, enumValues: 1_000 } as const;

/** The schema as a provider takes it, or why it can't. Arguments are always checked by the original. */
export function lowerSchema(schema: JsonObject, rules: SchemaRules): Lowered {
  return (
    attempt(() => {
      const size = JSON.stringify(schema).length;
      if (size > MOST_CHARS) throw new CantExpress(`its schema has ${size} characters, and ${MOST_CHARS} are the most`);
      return null;
    }) ??
    (rules === 'openai_strict' ? strictly(schema) : null) ??
    attempt(() => ({ ok: true, strict: false, schema: rules === 'plain' ? plainly(schema) : loosely(schema) })) ?? {
      ok: false,
      why: 'its schema is not understood',
    }
  );
}

function attempt<T>(work: () => T): T | { readonly ok: false; readonly why: string } {
  try {
    return work();
  } catch (error) {
    if (error instanceof CantExpress) return { ok: false, why: error.message };
    if (error instanceof RangeError) return { ok: false, why: 'its schema is nested too deeply' };
    throw error;
  }
}

/** As it came, but for what has no meaning there. */
function plainly(given: JsonObject): JsonObject {
  const { $schema: _, type = 'object', ...schema } = given;
  if (type !== 'object' && !asArray(type).includes('object')) throw new CantExpress('its arguments are no object');
  // It must lead somewhere, and the provider would be the one to find out.
  lowerLoose(given, new References(given, lowerLoose));
  return { properties: {}, ...schema, type: 'object' };
}

function loosely(schema: JsonObject): JsonObject {
  const root = upgradeSchema(schema);
  const references = new References(root, lowerLoose);
  return { ...lowerLoose(flattenRoot(root, references), references), ...references.definitions };
}

/** Null where strict mode can't say it. */
function strictly(schema: JsonObject): Lowered | null {
  const lowered = attempt((): Lowered => {
    const root = upgradeSchema(schema);
    refuseHidden(root);
    const references = new References(root, lowerStrict);
    const { description, ...flat } = flattenRoot(root, references);
    const object = lowerObject(flat, references, true);
    const whole = { ...(description === undefined ? {} : { description }), ...object, ...references.definitions };
    checkLimits(whole);
    return { ok: true, strict: true, schema: whole };
  });
  return lowered.ok ? lowered : null;
}

function checkLimits(schema: JsonObject): void {
  let properties = 0;
  let values = 0;
  const visit = (part: unknown, level: number): void => {
    const node = asObject(part);
    if (!node) return;
    if (level > STRICT.levels) throw new CantExpress(`it is nested deeper than ${STRICT.levels} levels`);
    const fields = Object.values(asObject(node.properties) ?? {});
    properties += fields.length;
    values += asArray(node.enum).length;
    for (const inner of [...fields, node.items]) visit(inner, level + 1);
    for (const inner of asArray(node.anyOf)) visit(inner, level);
    for (const inner of Object.values(asObject(node.$defs) ?? {})) visit(inner, level);
  };
  visit(schema, 0);
  if (properties > STRICT.properties) throw new CantExpress('it has too many fields');
  if (values > STRICT.enumValues) throw new CantExpress('it has too many values to choose from');
}

export interface LoweredTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
  readonly strict: boolean;
}

export interface LoweredTools {
  readonly tools: readonly LoweredTool[];
  /** Tools that this provider can't be shown; the rest of the request is as good as ever. */
  readonly leftOut: readonly { readonly name: string; readonly why: string }[];
}

const lists = new WeakMap<readonly StoredTool[], Map<SchemaRules, LoweredTools>>();

/** A turn's tools as a provider takes them; worked out once for each list. */
export function lowerTools(tools: readonly StoredTool[], rules: SchemaRules): LoweredTools {
  const known = lists.get(tools) ?? new Map<SchemaRules, LoweredTools>();
  lists.set(tools, known);
  const lowered = known.get(rules) ?? lowerEach(tools, rules);
  known.set(rules, lowered);
  return lowered;
}

function lowerEach(tools: readonly StoredTool[], rules: SchemaRules): LoweredTools {
  const shown: LoweredTool[] = [];
  const leftOut: { name: string; why: string }[] = [];
  for (const { name, description, parameters } of tools) {
    const lowered = lowerSchema(parameters, rules);
    if (lowered.ok) shown.push({ name, description, parameters: lowered.schema, strict: lowered.strict });
    else leftOut.push({ name, why: lowered.why });
  }
  return { tools: shown, leftOut };
}
