import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { session as sessionTable } from '../../activities/store/schema.ts';
import { callTools, type ChatRequest, countToolResults, lastUserText, type Reply, say } from '../../testing/index.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';

const EVERYTHING = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'));

let at: TestHouse;

const CALLS: Readonly<Record<string, { name: string; arguments: unknown }>> = {
  mcp: { name: 'mcp__all__echo', arguments: { message: 'over there' } },
  denied: { name: 'shell', arguments: { command: 'rm -rf /tmp/nothing' } },
  rewritten: { name: 'write_file', arguments: { path: 'a.txt', content: 'as the model wrote it' } },
  planned: { name: 'shell', arguments: { command: 'touch made.txt' } },
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

it('a planning session changes nothing, whatever the permission mode is', async () => {
  const { db } = at.house.database;
  mkdirSync(join(at.workspaces, 'planned'), { recursive: true });
  const { session } = await at.submit('not yet', { workspace: 'planned' });
  await at.ended(session);
  await db.update(sessionTable).set({ plan: true }).where(eq(sessionTable.id, session));
  await at.send(session, 'prompt', 'planned');
  expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED' });
  const result = (await at.transcript(session)).find((message) => message.kind === 'tool_result');
  expect(result?.text).toMatch(/this session is planning/);
  expect(existsSync(join(at.workspaces, 'planned', 'made.txt'))).toBe(false);
});
