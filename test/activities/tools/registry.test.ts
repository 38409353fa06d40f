import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { builtinTools } from '../../../activities/tools/builtin.ts';
import { defineTool } from '../../../activities/tools/define-tool.ts';
import { parseArguments } from '../../../activities/tools/parse-arguments.ts';
import { createRegistry } from '../../../activities/tools/registry.ts';
import { expectStorable } from './tool-context.ts';

const run = async () => ({ isError: false, text: '' });
const tool = (name: string, input: z.ZodType = z.object({})) => defineTool({ name, description: 'd', input, run });

describe('registry', () => {
  const registry = createRegistry(builtinTools);

  it('has the built-in tools', () => {
    expect(registry.names).toEqual(builtinTools.map(({ name }) => name));
    expect(builtinTools.map(({ name, effect, runs }) => [name, effect, runs])).toEqual([
      ['read_file', 'none', 'activity'],
      ['list_files', 'none', 'activity'],
      ['search_text', 'none', 'activity'],
      ['write_file', 'idempotent', 'activity'],
      ['edit_file', 'once', 'activity'],
      ['shell', 'once', 'activity'],
      ['read_output', 'none', 'activity'],
      ['todo_write', 'none', 'activity'],
      ['ask_user', 'none', 'wait'],
      ['wait_for', 'none', 'wait'],
      ['report_blocked', 'none', 'wait'],
      ['spawn_agent', 'none', 'child'],
      ['wait_agents', 'none', 'wait'],
      ['get_goal', 'none', 'activity'],
      ['update_goal', 'none', 'activity'],
      ['http_get', 'none', 'activity'],
      ['http_request', 'keyed', 'activity'],
    ]);
  });

  it('describes tools in the order asked for, with the schema of what goes in', () => {
    const [shell, list] = registry.describe(['shell', 'list_files']);
    expect(shell).toMatchObject({
      name: 'shell',
      effect: 'once',
      runs: 'activity',
      parameters: { type: 'object', required: ['command'] },
    });
    expect(list?.parameters).toEqual({
      type: 'object',
      properties: {
        path: { type: 'string', default: '.', description: expect.any(String) },
        depth: { type: 'integer', minimum: 1, maximum: 10, default: 1, description: expect.any(String) },
      },
      additionalProperties: false,
    });
    expect(() => registry.describe(['nope'])).toThrow('There is no tool named "nope"');
  });

  it.each(['nope', 'constructor', '__proto__', '', 'a\0\ud800'])('%j is an unknown tool', (name) => {
    const found = registry.lookup(name, ['shell', 'read_file']);
    expect(found).toMatchObject({ ok: false, text: expect.stringContaining('Your tools are: shell, read_file.') });
    if (!found.ok) expectStorable(found.text);
  });

  it('a tool that the agent was not given does not exist for it', () => {
    expect(registry.lookup('shell', ['read_file']).ok).toBe(false);
    expect(registry.lookup('shell')).toMatchObject({ ok: true, tool: { name: 'shell' } });
  });

  it.each([
    ['two of one name', [tool('a'), tool('a')], 'two tools named "a"'],
    ['a space', [tool('a b')], 'must match'],
    ['no name', [tool('')], 'must match'],
    ['a dot', [tool('a.b')], 'must match'],
    ['a long name', [tool('a'.repeat(65))], 'must match'],
    ['an input that is no object', [tool('a', z.string())], 'must be an object schema'],
  ])('%s is an error at creation', (_, tools, message) => {
    expect(() => createRegistry(tools)).toThrow(message);
  });
});

describe('arguments', () => {
  const free = tool('free');
  const strict = tool(
    'strict',
    z.strictObject({
      id: z.number(),
      note: z.string().optional(),
      deep: z.object({ a: z.array(z.string()) }).optional(),
    }),
  );

  it.each([
    [free, '', '{}'],
    [free, ' \n\t', '{}'],
    [free, '{"b":{"d":1,"c":[{"y":1,"x":2}]},"a":"\\u0000"}', '{"a":"\\u0000","b":{"c":[{"x":2,"y":1}],"d":1}}'],
    [free, '{"__proto__":{"x":1}}', '{"__proto__":{"x":1}}'],
    [strict, ' {"note":"n","id":11} ', '{"id":11,"note":"n"}'],
    // Strict mode: null stands for what was left out.
    [strict, '{"id":11,"note":null}', '{"id":11}'],
  ])('%# %j', (of, raw, canonical) => {
    expect(parseArguments(of, raw)).toMatchObject({ ok: true, canonical });
  });

  it.each([
    [free, '{"a":1}{"b":2}', 'not one whole JSON object'],
    [free, '{"a":', 'not one whole JSON object'],
    [free, 'null', 'and this is null'],
    [free, '[]', 'and this is an array'],
    [free, '"text"', 'and this is a string'],
    [strict, '', '- id: Invalid input: expected number, received undefined'],
    [strict, '{"id":"11"}', '- id: Invalid input: expected number, received string'],
    [strict, '{"id":1,"deep":{"a":["x",2]}}', '- deep.a.1: Invalid input: expected string, received number'],
    [strict, '{"id":1,"nte\\u0000\\ud800":"x"}', 'Unrecognized key'],
    [strict, `{"id":1,${Array.from({ length: 5_000 }, (_, i) => `"k${i}":1`).join(',')}}`, 'Unrecognized key'],
    [free, `{"a":${'['.repeat(200_000)}${']'.repeat(200_000)}}`, 'nested too deeply'],
  ])('%# a fault is a text for the model', (of, raw, text) => {
    const parsed = parseArguments(of, raw);
    expect(parsed).toMatchObject({ ok: false, text: expect.stringContaining(text) });
    if (parsed.ok) return;
    expect(parsed.text.length).toBeLessThanOrEqual(2_000);
    expectStorable(parsed.text);
  });

  it('fills in defaults for the tool, not for the hash', () => {
    const list = createRegistry(builtinTools).lookup('list_files');
    if (!list.ok) throw new Error(list.text);
    expect(parseArguments(list.tool, '{}')).toEqual({ ok: true, args: { path: '.', depth: 1 }, canonical: '{}' });
  });
});
