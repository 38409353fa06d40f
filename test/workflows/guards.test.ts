import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { outbox } from '../../activities/store/schema.ts';
import { callTools, type ChatRequest, countToolResults, lastUserText, type Reply, say } from '../../testing/index.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

const EVERYTHING = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'));

let at: TestHouse;

const CALLS: Readonly<Record<string, { name: string; arguments: unknown }>> = {
  mcp: { name: 'mcp__all__echo', arguments: { message: 'over there' } },
  denied: { name: 'shell', arguments: { command: 'rm -rf /tmp/nothing' } },
  rewritten: { name: 'write_file', arguments: { path: 'a.txt', content: 'as the model wrote it' } },
};

function rules(request: ChatRequest): Reply {
  const call = CALLS[lastUserText(request)];
  return call && countToolResults(request) === 0 ? callTools([call]) : say('Done.');
}

beforeAll(async () => {
  at = await testHouse({
    rules,
    agent: {
      tools: ['shell', 'write_file', 'mcp__all__*'],
      permissions: { mode: 'bypass', rules: [{ action: 'deny', tool: 'shell', argument: 'rm *' }] },
    },
    definition: {
      mcp: { all: { command: process.execPath, args: [EVERYTHING, 'stdio'] } },
      hooks: [
        {
          event: 'PreToolUse',
          tool: 'write_file',
          run: () => ({ rewrite: { path: 'a.txt', content: 'as the hook wrote it' } }),
        },
      ],
    },
  });
});
afterAll(async () => {
  await at.close();
});

async function run(text: string): Promise<{ session: string; result: string | undefined; file(name: string): string }> {
  mkdirSync(join(at.workspaces, text), { recursive: true });
  const { session } = await at.submit(text, { workspace: text });
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
  const found = (await at.transcript(session)).find((message) => message.kind === 'tool_result');
  return { session, result: found?.text, file: (name) => join(at.workspaces, text, name) };
}

it('a tool of an MCP server is offered, called and answered like any other', async () => {
  expect((await run('mcp')).result).toBe('Echo: over there');
});

it('a deny rule is data: the model is told, nothing runs, and the turn goes on', async () => {
  const { session, result } = await run('denied');
  expect(result).toMatch(/^The call of shell did not run: rule 1 of the agent's permissions denies it\./);
  const events = (await at.events(session)).map(({ event }) => event);
  expect(events).toContainEqual(expect.objectContaining({ kind: 'call.denied', by: 'rule' }));
  expect(events.map(({ kind }) => kind)).not.toContain('call.started');
});

it('what a hook rewrites is what runs', async () => {
  const { file } = await run('rewritten');
  expect(readFileSync(file('a.txt'), 'utf8')).toBe('as the hook wrote it');
});

// Reports cost a row each, and only where somebody wants to hear of them.
it('nothing is kept for hooks that there are not', async () => {
  const { session } = await run('denied');
  await until('the rest', async () => (await at.events(session)).some(({ event }) => event.kind === 'driver.ended'));
  const receivers = await at.house.database.db.selectDistinct({ receiver: outbox.receiver }).from(outbox);
  expect(receivers.filter(({ receiver }) => !receiver.startsWith('session:'))).toEqual([]);
});
