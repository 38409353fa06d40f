import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type JsonObject, parseJson } from '../../../activities/model/json.ts';
import { lowerSchema, lowerTools } from '../../../activities/model/lower-schema.ts';
import { jsonSchemaInput } from '../../../activities/mcp/json-schema-input.ts';
import { defineTool } from '../../../activities/tools/define-tool.ts';
import { parseArguments } from '../../../activities/tools/parse-arguments.ts';
import { accepts } from './provider-rules.ts';

const RULES = ['plain', 'openai', 'openai_strict'] as const;
const object = (properties: object, more: object = {}): JsonObject => ({ type: 'object', properties, ...more });
const closed = (properties: object): JsonObject =>
  object(properties, { required: Object.keys(properties), additionalProperties: false });

const node = {
  type: 'object',
  properties: { value: { type: 'string' }, next: { $ref: '#/$defs/node' } },
  required: ['value'],
};
const recursive = object({ first: { $ref: '#/$defs/node' } }, { required: ['first'], $defs: { node } });
const big = object(
  Object.fromEntries(
    Array.from({ length: 4_000 }, (_, n) => [`field_${n}`, { type: 'string', description: 'x'.repeat(20) }]),
  ),
);

type Row = {
  readonly of: string;
  readonly schema: JsonObject;
  readonly openai: JsonObject;
  /** `loose`: can't be said in strict mode, so it is sent as under `openai`. */
  readonly strict: JsonObject | 'loose';
};

/** Case 55: each of these made a provider refuse the whole request. */
const rows: readonly Row[] = [
  {
    of: 'anyOf at the top',
    schema: {
      anyOf: [
        object({ id: { type: 'integer' } }, { required: ['id'] }),
        object({ name: { type: 'string' } }, { required: ['name'] }),
      ],
    },
    openai: object({ id: { type: 'integer' }, name: { type: 'string' } }),
    strict: closed({ id: { type: ['integer', 'null'] }, name: { type: ['string', 'null'] } }),
  },
  {
    of: 'anyOf at the top that only says what is required',
    schema: object(
      { a: { type: 'string' }, b: { type: 'string' } },
      { anyOf: [{ required: ['a'] }, { required: ['a', 'b'] }] },
    ),
    openai: object({ a: { type: 'string' }, b: { type: 'string' } }, { required: ['a'] }),
    strict: closed({ a: { type: 'string' }, b: { type: ['string', 'null'] } }),
  },
  {
    of: 'alternatives that differ in one field',
    schema: { oneOf: [object({ at: { type: 'integer' } }), object({ at: { type: 'string' } })] },
    openai: object({ at: { anyOf: [{ type: 'integer' }, { type: 'string' }] } }),
    strict: closed({ at: { anyOf: [{ type: 'integer' }, { type: 'string' }, { type: 'null' }] } }),
  },
  { of: 'a bare {} as the whole', schema: {}, openai: object({}), strict: closed({}) },
  { of: 'a bare {} inside', schema: object({ any: {} }), openai: object({ any: {} }), strict: 'loose' },
  {
    of: 'format uri',
    schema: object({ url: { type: 'string', format: 'uri', description: 'Where.' } }, { required: ['url'] }),
    openai: object({ url: { type: 'string', description: 'Where. Format: uri.' } }, { required: ['url'] }),
    strict: closed({ url: { type: 'string', description: 'Where. Format: uri.' } }),
  },
  {
    of: 'a format that is known',
    schema: object({ at: { type: 'string', format: 'date-time' } }, { required: ['at'] }),
    openai: object({ at: { type: 'string', format: 'date-time' } }, { required: ['at'] }),
    strict: closed({ at: { type: 'string', format: 'date-time' } }),
  },
  {
    of: 'additionalProperties {}',
    schema: object({ id: { type: 'string' } }, { additionalProperties: {} }),
    openai: object({ id: { type: 'string' } }, { additionalProperties: true }),
    strict: 'loose',
  },
  {
    of: 'additionalProperties with a schema',
    schema: object({ labels: { type: 'object', additionalProperties: { type: 'string' } } }),
    openai: object({ labels: { type: 'object', additionalProperties: { type: 'string' } } }),
    strict: 'loose',
  },
  {
    of: 'no additionalProperties',
    schema: object({ at: object({ x: { type: 'number' } }, { required: ['x'] }) }, { required: ['at'] }),
    openai: object({ at: object({ x: { type: 'number' } }, { required: ['x'] }) }, { required: ['at'] }),
    strict: closed({ at: closed({ x: { type: 'number' } }) }),
  },
  {
    of: 'an object of any fields',
    schema: object({ data: { type: 'object' } }),
    openai: object({ data: { type: 'object' } }),
    strict: 'loose',
  },
  {
    of: 'a recursive reference',
    schema: recursive,
    openai: recursive,
    strict: {
      ...closed({ first: { $ref: '#/$defs/node' } }),
      $defs: {
        node: closed({ value: { type: 'string' }, next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } }),
      },
    },
  },
  {
    of: 'a reference to the root',
    schema: object({ children: { type: 'array', items: { $ref: '#' } } }),
    openai: object({ children: { type: 'array', items: { $ref: '#' } } }),
    strict: closed({ children: { type: ['array', 'null'], items: { $ref: '#' } } }),
  },
  {
    of: 'a reference as the root',
    schema: {
      $ref: '#/definitions/Args',
      definitions: { Args: object({ id: { type: 'string' } }, { required: ['id'] }) },
    },
    openai: object({ id: { type: 'string' } }, { required: ['id'] }),
    strict: closed({ id: { type: 'string' } }),
  },
  {
    of: 'an optional field, a choice among them',
    schema: object({ note: { type: 'string' }, level: { type: 'string', enum: ['a', 'b'] } }),
    openai: object({ note: { type: 'string' }, level: { type: 'string', enum: ['a', 'b'] } }),
    strict: closed({ note: { type: ['string', 'null'] }, level: { type: ['string', 'null'], enum: ['a', 'b', null] } }),
  },
  {
    of: 'default',
    schema: object({ depth: { type: 'integer', default: 1 } }),
    openai: object({ depth: { type: 'integer', default: 1 } }),
    strict: closed({ depth: { type: ['integer', 'null'], description: 'Default: 1.' } }),
  },
  {
    of: 'several types',
    schema: object(
      { a: { type: ['string', 'null'] }, b: { type: ['string', 'array'], items: { type: 'string' } } },
      { required: ['a', 'b'] },
    ),
    openai: object(
      { a: { type: ['string', 'null'] }, b: { type: ['string', 'array'], items: { type: 'string' } } },
      { required: ['a', 'b'] },
    ),
    strict: closed({
      a: { type: ['string', 'null'] },
      b: { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] },
    }),
  },
  {
    of: 'const',
    schema: object({ kind: { const: 'note' }, n: { const: 3 } }, { required: ['kind', 'n'] }),
    openai: object({ kind: { const: 'note' }, n: { const: 3 } }, { required: ['kind', 'n'] }),
    strict: closed({ kind: { type: 'string', enum: ['note'] }, n: { type: 'number', enum: [3] } }),
  },
  {
    of: 'draft-04',
    schema: {
      $schema: 'http://json-schema.org/draft-04/schema#',
      id: 'http://example.com/tool',
      ...object({ at: { $ref: '#/definitions/point' } }, { required: ['at'] }),
      definitions: {
        point: object(
          { x: { type: 'number', minimum: 0, exclusiveMinimum: true } },
          { required: ['x'], additionalProperties: false },
        ),
      },
    },
    openai: {
      ...object({ at: { $ref: '#/$defs/point' } }, { required: ['at'] }),
      $defs: {
        point: object({ x: { type: 'number', exclusiveMinimum: 0 } }, { required: ['x'], additionalProperties: false }),
      },
    },
    strict: {
      ...closed({ at: { $ref: '#/$defs/point' } }),
      $defs: { point: closed({ x: { type: 'number', exclusiveMinimum: 0 } }) },
    },
  },
  {
    of: 'a list without items, and a tuple',
    schema: object({
      list: { type: 'array' },
      pair: { type: 'array', items: [{ type: 'string' }, { type: 'number' }] },
    }),
    openai: object({
      list: { type: 'array', items: {} },
      pair: { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'number' }] } },
    }),
    strict: 'loose',
  },
  {
    of: 'length limits and look-around',
    schema: object({ s: { type: 'string', minLength: 1, maxLength: 5, pattern: '(?=a)b' } }, { required: ['s'] }),
    openai: object({ s: { type: 'string', minLength: 1, maxLength: 5, pattern: '(?=a)b' } }, { required: ['s'] }),
    strict: closed({ s: { type: 'string' } }),
  },
];

describe.each(rows)('$of', ({ schema, openai, strict }) => {
  it('is sent as it is to a plain provider, but as an object', () => {
    const lowered = lowerSchema(schema, 'plain');
    const { $schema: _, ...rest } = schema;
    expect(lowered).toEqual({ ok: true, strict: false, schema: { properties: {}, ...rest, type: 'object' } });
  });
  it('openai', () => expect(lowerSchema(schema, 'openai')).toEqual({ ok: true, strict: false, schema: openai }));
  it('openai_strict', () => {
    const expected = strict === 'loose' ? { schema: openai, strict: false } : { schema: strict, strict: true };
    expect(lowerSchema(schema, 'openai_strict')).toEqual({ ok: true, ...expected });
  });
  it.each(RULES)('no provider of the kind %s refuses it', (rules) => {
    const lowered = lowerSchema(schema, rules);
    if (!lowered.ok) throw new Error(lowered.why);
    expect(accepts(lowered.schema, rules === 'openai_strict' && !lowered.strict ? 'openai' : rules)).toBe('');
  });
});

const nested = (levels: number) =>
  parseJson(`${'{"type":"object","properties":{"a":'.repeat(levels)}{}${'}}'.repeat(levels)}`) as JsonObject;

describe('what no provider can be shown', () => {
  it.each([
    ['200 KB', big, 'characters'],
    ['a reference that leads nowhere', object({ a: { $ref: '#/$defs/b' } }), 'leads nowhere'],
    ['a reference to elsewhere', object({ a: { $ref: 'https://example.com/a.json' } }), 'leads out of the schema'],
    ['no object', { type: 'array', items: {} }, 'no object'],
  ])('%s', (_, schema, why) => {
    for (const rules of RULES)
      expect(lowerSchema(schema, rules)).toEqual({ ok: false, why: expect.stringContaining(why) });
  });

  it.each([
    ['alternatives that contain themselves', { anyOf: [{ $ref: '#' }, object({})] }, 'contains itself'],
    ['a reference to itself', { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/a' } } }, 'leads only to itself'],
    ['alternatives that are no objects', { anyOf: [{ type: 'string' }, { type: 'null' }] }, 'no object'],
  ])('%s, by OpenAI’s rules', (_, schema: JsonObject, why) => {
    for (const rules of ['openai', 'openai_strict'] as const) {
      expect(lowerSchema(schema, rules)).toEqual({ ok: false, why: expect.stringContaining(why) });
    }
  });

  it('a schema too deep for strict mode is sent without it', () => {
    expect(lowerSchema(nested(12), 'openai_strict')).toMatchObject({ ok: true, strict: false });
    // Whatever the stack holds, it is an answer and no crash.
    for (const rules of RULES) expect(typeof lowerSchema(nested(2_000), rules).ok).toBe('boolean');
  });

  it('leaves that tool out and says why; the others stay', () => {
    const tool = (name: string, parameters: JsonObject) =>
      ({ name, description: 'd', parameters, effect: 'none', runs: 'activity' }) as const;
    const tools = [tool('good', object({})), tool('huge', big)];
    const lowered = lowerTools(tools, 'openai');
    expect(lowered.tools.map(({ name }) => name)).toEqual(['good']);
    expect(lowered.leftOut).toEqual([{ name: 'huge', why: expect.stringContaining('characters') }]);
    expect(lowerTools(tools, 'openai')).toBe(lowered);
  });
});

describe('arguments are checked by the original', () => {
  const tool = (schema: JsonObject) =>
    defineTool({
      name: 't',
      description: 'd',
      input: jsonSchemaInput(schema),
      run: async () => ({ isError: false, text: '' }),
    });
  const canonical = (schema: JsonObject, raw: string) => {
    const parsed = parseArguments(tool(schema), raw);
    return parsed.ok ? parsed.canonical : parsed.text;
  };
  const optional = object(
    {
      note: { type: 'string' },
      both: { type: ['string', 'null'] },
      deep: object({ a: { type: 'string' }, b: { anyOf: [{ type: 'integer' }, { type: 'boolean' }] } }),
      list: { type: 'array', items: object({ c: { enum: ['x'] } }) },
    },
    { required: ['both'] },
  );

  it.each([
    // Strict mode: null for an optional field means that it is absent, at any depth.
    [optional, '{"both":null,"note":null}', '{"both":null}'],
    [
      optional,
      '{"both":null,"deep":{"a":null,"b":null},"list":[{"c":null},{"c":"x"}]}',
      '{"both":null,"deep":{},"list":[{},{"c":"x"}]}',
    ],
    [
      {
        anyOf: [
          object({ id: { type: 'integer' } }, { required: ['id'] }),
          object({ name: { type: 'string' } }, { required: ['name'] }),
        ],
      },
      '{"id":1,"name":null}',
      '{"id":1,"name":null}',
    ],
    [object({ url: { type: 'string', format: 'uri' } }), '{"url":"not one"}', '{"url":"not one"}'],
    [rows.find(({ of }) => of === 'draft-04')!.schema, '{"at":{"x":1}}', '{"at":{"x":1}}'],
    // It can't be compiled, so the server is the one who checks.
    [object({ a: { $ref: 'https://example.com/a.json' } }), '{"a":1}', '{"a":1}'],
  ])('%# fits', (schema, raw, expected) => expect(canonical(schema, raw)).toBe(expected));

  it('a zod schema sees nested nulls of strict mode as absent too', () => {
    const input = z.object({ deep: z.object({ a: z.string().optional(), b: z.string().nullable() }).optional() });
    const own = defineTool({ name: 't', description: 'd', input, run: async () => ({ isError: false, text: '' }) });
    expect(parseArguments(own, '{"deep":{"a":null,"b":null}}')).toMatchObject({
      ok: true,
      canonical: '{"deep":{"b":null}}',
    });
  });

  it.each([
    [optional, '{}', "must have required property 'both'"],
    [object({ s: { type: 'string', maxLength: 2 } }), '{"s":"abc"}', '- s: must NOT have more than 2 characters'],
    [object({ a: { enum: ['x', 'y'] } }), '{"a":"z"}', '- a: must be equal to one of the allowed values: ["x","y"]'],
    [object({}, { additionalProperties: false }), '{"b":1}', 'must NOT have additional properties: "b"'],
    [rows.find(({ of }) => of === 'draft-04')!.schema, '{"at":{"x":0}}', '- at.x: must be > 0'],
    [
      { anyOf: [object({ id: {} }, { required: ['id'] }), object({ name: {} }, { required: ['name'] })] },
      '{}',
      'must match a schema in anyOf',
    ],
    [recursive, '{"first":{"value":"a","next":{"value":1}}}', '- first.next.value: must be string'],
  ])('%# does not fit', (schema, raw, expected) => expect(canonical(schema, raw)).toContain(expected));
});
