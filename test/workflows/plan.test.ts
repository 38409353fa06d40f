import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { effect } from '../../activities/store/schema.ts';
import { defineTool } from '../../activities/tools/define-tool.ts';
import { createRuns, type Runs } from '../../client/index.ts';
import { callTools, countToolResults, hold, paced, say, type ScriptedCall } from '../../testing/index.ts';
import { conversations } from '../support/conversations.ts';
import { only } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';

const PLANNING = /^The call of (\w+) did not run: this session is planning/;

const posting = hold();
/** Under way until the test says so. */
const post = defineTool({
  name: 'post',
  description: 'Posts something.',
  input: z.strictObject({}),
  effect: 'once',
  async run() {
    posting.reach();
    await posting.released;
    return { isError: false, text: 'posted' };
  },
});

const talk = conversations();
let at: TestHouse;
let runs: Runs;
beforeAll(async () => {
  at = await testHouse({ rules: talk.rules, tools: [post] });
  runs = createRuns(at.house);
});
afterAll(async () => {
  await at.close();
});

const write = (path: string): ScriptedCall => ({ name: 'write_file', arguments: { path, content: 'x' } });
const touch = (path: string): ScriptedCall => ({ name: 'shell', arguments: { command: `touch ${path}` } });

async function begin(name: string, plan = false): Promise<{ session: string; file: (of: string) => string }> {
  mkdirSync(join(at.workspaces, name), { recursive: true });
  const key = `key of ${name}`;
  const submitted = await runs.submit({ tenant: 'default', key, text: name, workspace: name, plan, sender: 'pat' });
  if (submitted.kind !== 'accepted') throw new Error(submitted.kind);
  return { session: submitted.session, file: (of) => join(at.workspaces, name, of) };
}

const set = (session: string, plan: boolean) => runs.plan('default', session, { plan, by: 'pat' });
const results = async (session: string) =>
  (await at.transcript(session)).flatMap((message) =>
    message.kind === 'tool_result' ? [PLANNING.exec(message.text)?.[1] ?? message.text.split('\n')[0]] : [],
  );

// The agent has no rules at all (`bypass`), so nothing but the flag keeps it.
it('a job handed in to plan changes nothing but PLAN.md, until the flag is taken away', async () => {
  talk.on('plan first', (request) =>
    countToolResults(request) === 0
      ? callTools([write('PLAN.md'), write('a.txt'), touch('b.txt'), { name: 'list_files', arguments: {} }])
      : say('Done.'),
  );
  const { session, file } = await begin('plan first', true);
  await at.ended(session);
  expect((await results(session)).slice(1, 3)).toEqual(['write_file', 'shell']);
  expect(['PLAN.md', 'a.txt', 'b.txt'].map((name) => existsSync(file(name)))).toEqual([true, false, false]);
  expect(await set(session, false)).toEqual({ plan: false, changed: true });
  talk.on('plan first', (request) => (countToolResults(request) === 4 ? callTools([write('a.txt')]) : say('Done.')));
  await at.send(session, 'prompt', 'now do it');
  await at.ended(session, 2);
  expect(readFileSync(file('a.txt'), 'utf8')).toBe('x');
  expect(only(await at.events(session), 'plan.set').map(({ plan, by }) => [plan, by])).toEqual([
    [true, 'pat'],
    [false, 'pat'],
  ]);
});

// These calls were let through with the reply and see no gate: where they begin is the last place to look.
it('set while the model writes, it holds for the calls of that reply', async () => {
  const stop = hold();
  talk.on('mid-reply', (request) =>
    countToolResults(request) === 0
      ? paced(callTools([write('PLAN.md'), write('a.txt'), touch('b.txt')], { text: 'So:' }), { hold: stop, holdAt: 2 })
      : say('Done.'),
  );
  const { session, file } = await begin('mid-reply');
  await stop.reached;
  expect(await set(session, true)).toEqual({ plan: true, changed: true });
  stop.release();
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
  expect((await results(session)).slice(1)).toEqual(['write_file', 'shell']);
  expect(['PLAN.md', 'a.txt', 'b.txt'].map((name) => existsSync(file(name)))).toEqual([true, false, false]);
  const events = (await at.events(session)).map(({ event }) => event);
  expect(events.flatMap((event) => (event.kind === 'call.denied' ? [[event.tool, event.by]] : []))).toEqual([
    ['write_file', 'plan'],
    ['shell', 'plan'],
  ]);
  expect(events.filter(({ kind }) => kind === 'call.started')).toHaveLength(1);
  const { db } = at.house.database;
  const ledger = await db
    .select()
    .from(effect)
    .where(eq(effect.turn, `${session}/1`));
  expect(ledger.map(({ tool, state }) => `${tool} ${state}`).toSorted()).toEqual([
    'shell settled_absent',
    'write_file settled_absent',
    'write_file succeeded',
  ]);
});

it('set while a call runs, that call finishes and the next one does not begin', async () => {
  talk.on('mid-batch', (request) =>
    countToolResults(request) === 0 ? callTools([{ name: 'post', arguments: {} }, touch('b.txt')]) : say('Done.'),
  );
  const { session, file } = await begin('mid-batch');
  await posting.reached;
  await set(session, true);
  posting.release();
  await at.ended(session);
  expect(await results(session)).toEqual(['posted', 'shell']);
  expect(existsSync(file('b.txt'))).toBe(false);
});

it('set twice it is set once; another tenant’s session is not there', async () => {
  talk.on('twice', () => say('Done.'));
  const { session } = await begin('twice');
  expect([await set(session, true), await set(session, true)]).toEqual([
    { plan: true, changed: true },
    { plan: true, changed: false },
  ]);
  expect(await runs.plan('other', session, { plan: false, by: 'eve' })).toBeNull();
  expect(await runs.plan('default', 'ses_none', { plan: true, by: 'pat' })).toBeNull();
  await at.ended(session);
  expect(only(await at.events(session), 'plan.set')).toHaveLength(1);
});
