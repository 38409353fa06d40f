import { expect, it, test } from 'vitest';
import { z } from 'zod';
import { hasTool, isExpected, usableCheck } from '../../../activities/goal/tool-check.ts';
import { builtinTools } from '../../../activities/tools/builtin.ts';
import { defineTool } from '../../../activities/tools/define-tool.ts';
import { createRegistry } from '../../../activities/tools/registry.ts';

const run = () => Promise.resolve({ isError: false, text: '' });
const tool = (name: string, effect: 'none' | 'idempotent' | 'keyed' | 'once') =>
  defineTool({ name, description: 'd', input: z.strictObject({ branch: z.string() }), effect, run });
const registry = createRegistry([
  ...builtinTools,
  tool('ci_status', 'none'),
  tool('sync', 'idempotent'),
  tool('pay', 'keyed'),
  tool('post', 'once'),
]);
const check = (name: string, args: Record<string, unknown> = { branch: 'main' }) =>
  ({ tool: name, arguments: args, timeoutSeconds: 10 }) as const;
const judged = (name: string, args?: Record<string, unknown>) => {
  const usable = usableCheck(check(name, args), registry.lookup(name));
  return usable.ok ? 'ok' : usable.why;
};

test.each<[string, Record<string, unknown> | undefined, string]>([
  ['ci_status', undefined, 'ok'],
  ['sync', undefined, 'ok'],
  ['nope', undefined, 'There is no tool nope to check with: name another one, or give a command.'],
  [
    'wait_for',
    undefined,
    'The tool wait_for waits, so it can check nothing: name a tool that reads, or give a command.',
  ],
  ...(['pay', 'post'] as const).map((name): [string, undefined, string] => [
    name,
    undefined,
    `The tool ${name} may do something each time it is called (its effect is ${name === 'pay' ? 'keyed' : 'once'}): check with a tool that only reads, or give a command.`,
  ]),
  [
    'ci_status',
    { branch: 3 },
    'The arguments of the check ci_status do not fit: branch: Invalid input: expected string, received number.',
  ],
])('%s %j: %s', (name, args, answer) => {
  expect(judged(name, args)).toBe(answer);
});

it('is one of the agent’s own tools, by name or by what stands for a server’s', () => {
  const agent = { name: 'a', tools: ['ci_status', 'mcp__ci__*'] };
  expect(hasTool(agent, check('mcp__ci__state'))).toBeNull();
  expect(hasTool(agent, check('sync'))).toEqual({
    ok: false,
    why: 'The agent a has no tool sync to check with: name one of ci_status, mcp__ci__*.',
  });
});

test.each<[unknown, string, boolean]>([
  ['green', ' green\n', true],
  ['green', 'green, nearly', false],
  ['', '', true],
  [{ state: 'green' }, '{"state": "green", "jobs": 3}', true],
  [{ state: 'green' }, '{"state": "red"}', false],
  [{ state: 'green' }, 'green', false],
  [{}, '[]', false],
  [{ state: undefined }, '{}', true],
  [{ jobs: [{ ok: true }] }, '{"jobs": [{"ok": true, "n": 1}]}', true],
  [{ jobs: [{ ok: true }] }, '{"jobs": [{"ok": true}, {"ok": false}]}', false],
  [[1, 2], '[1, 2]', true],
  [[1, 2], '[2, 1]', false],
  [0, '0', true],
  [null, 'null', true],
  [null, 'nothing', false],
  [{ constructor: 1 }, '{}', false],
])('wanted %j of %j: %s', (expected, text, answer) => {
  // As it comes out of the store.
  const stored: unknown = typeof expected === 'string' ? expected : JSON.parse(JSON.stringify(expected));
  expect(isExpected(stored, text)).toBe(answer);
});
