import { describe, expect, test } from 'vitest';
import { judgeAnswer } from '../../../activities/answer/judge-answer.ts';
import { usableSchema } from '../../../activities/answer/output-schema.ts';
import { takeAnswer } from '../../../activities/answer/take-answer.ts';
import type { ModelResult } from '../../../activities/model/port.ts';
import type { Finish } from '../../../workflows/core/sample-outcome.ts';
import { USAGE } from '../store/seed.ts';

const SCHEMA = {
  type: 'object',
  properties: { verdict: { enum: ['ok', 'bad'] }, note: { type: 'string' } },
  required: ['verdict'],
  additionalProperties: false,
};

describe('a text that is to fit a schema', () => {
  const ok = { verdict: 'ok' };
  test.each<[name: string, text: string, value: unknown]>([
    ['as it is', '{"verdict":"ok"}', ok],
    ['in a fence', '```json\n{"verdict":"ok"}\n```', ok],
    ['in a fence without a name, on one line', '```{"verdict":"ok"}```', ok],
    ['with text around it', 'It is {"verdict":"ok"}, I think.', ok],
    ['the last of two fences that fit', '```\n{"verdict":"bad"}\n```\nNo:\n```\n{"verdict":"ok"}\n```', ok],
    ['a fence that fits behind one that does not', '```\n{"x":1}\n```\n```\n{"verdict":"ok"}\n```', ok],
    // Strict mode sends null for what may be left out; the schema's author never allowed it.
    ['with nulls for what is left out', '{"verdict":"ok","note":null}', ok],
    ['with braces in its strings', 'Here: {"verdict":"ok","note":"a } b { c"} end', { ...ok, note: 'a } b { c' }],
  ])('%s', (_name, text, value) => {
    expect(judgeAnswer(text, SCHEMA)).toEqual({ ok: true, value });
  });

  test.each<[name: string, text: string, faults: RegExp]>([
    ['empty', '', /no JSON object/],
    ['prose', 'All is secret-good.', /no JSON object/],
    ['half of it', '{"verdict":"ok","note":"secret-', /no JSON object/],
    ['a list', '["ok"]', /must be a JSON object/],
    ['another value', '{"verdict":"secret-"}', /verdict: .*allowed values/],
    ['a field too many', '{"verdict":"ok","more":"secret-"}', /additional properties/],
  ])('%s is no answer, and its faults quote nothing of it', (_name, text, faults) => {
    const judged = judgeAnswer(text, SCHEMA);
    expect(judged).toEqual({ ok: false, faults: expect.stringMatching(faults) as string });
    expect(JSON.stringify(judged)).not.toContain('secret-');
  });
});

describe('a reply as an answer', () => {
  const reply = (
    text: string,
    calls: readonly [string, string][],
    finish: Finish,
  ): ModelResult & { kind: 'reply' } => ({
    kind: 'reply',
    finish,
    usage: USAGE,
    text,
    reasoning: '',
    calls: calls.map(([name, args], n) => ({ id: `c${n}`, name, arguments: args })),
    extra: {},
  });
  const S = 'StructuredOutput';

  test.each<[name: string, result: ModelResult & { kind: 'reply' }, verdict: string | null, statuses: string[]]>([
    ['one call that fits', reply('', [[S, '{"verdict":"ok"}']], 'tool_calls'), 'valid', ['ok']],
    ['one that fits, labelled cut', reply('', [[S, '{"verdict":"ok"}']], 'length'), 'valid', ['ok']],
    ['one that is cut', reply('', [[S, '{"verdict":']], 'length'), 'cut', ['error']],
    ['one that does not fit', reply('', [[S, '{}']], 'tool_calls'), 'invalid', ['error']],
    [
      'two at once',
      reply(
        '',
        [
          [S, '{"verdict":"ok"}'],
          [S, '{"verdict":"bad"}'],
        ],
        'stop',
      ),
      'invalid',
      ['error', 'error'],
    ],
    [
      'one beside another call',
      reply(
        '',
        [
          ['shell', '{}'],
          [S, '{"verdict":"ok"}'],
        ],
        'stop',
      ),
      null,
      [],
    ],
    ['a text that fits', reply('{"verdict":"ok"}', [], 'stop'), 'valid', []],
    ['a text that does not', reply('Good.', [], 'stop'), 'invalid', []],
    ['a text that is cut', reply('{"verdict":', [], 'length'), 'cut', []],
  ])('%s', (_name, result, verdict, statuses) => {
    const taken = takeAnswer(result, SCHEMA);
    expect(taken?.verdict ?? null).toBe(verdict);
    expect(taken?.answers.map(({ status }) => status) ?? []).toEqual(statuses);
  });
});

describe('a schema that somebody hands in', () => {
  test.each<[name: string, schema: unknown]>([
    ['the least', { type: 'object' }],
    ['with its dialect', { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object', definitions: {} }],
    ['with references', { type: 'object', properties: { a: { $ref: '#/$defs/a' } }, $defs: { a: { type: 'string' } } }],
    ['with words and formats that nobody knows', { type: 'object', 'x-own': 1, properties: { a: { format: 'odd' } } }],
  ])('%s is usable', (_name, schema) => {
    expect(usableSchema(schema)).toEqual({ ok: true, schema });
  });

  test.each<[name: string, schema: unknown, why: RegExp]>([
    ['no object', [], /JSON object/],
    ['another root', { type: 'array', items: {} }, /"type": "object"/],
    ['no root type', { properties: {} }, /"type": "object"/],
    ['a type that there is not', { type: 'object', properties: { a: { type: 'strng' } } }, /no valid JSON Schema/],
    ['a reference to nothing', { type: 'object', properties: { a: { $ref: '#/$defs/b' } } }, /no valid JSON Schema/],
    ['too long', { type: 'object', description: 'x'.repeat(100_001) }, /100000 are the most/],
  ])('%s is refused in one sentence', (_name, schema, why) => {
    const usable = usableSchema(schema);
    expect(usable.ok).toBe(false);
    if (usable.ok) return;
    expect(usable.why).toMatch(why);
    expect(usable.why).toMatch(/^The output schema can’t be used: [^\n]+\.$/);
  });
});
