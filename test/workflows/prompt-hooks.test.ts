import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { HookInput } from '../../activities/gate/hook-types.ts';
import { storeInput } from '../../activities/store/intake.ts';
import { input, turn } from '../../activities/store/schema.ts';
import { createRuns, type Runs } from '../../client/index.ts';
import { callTools, countToolResults, hold, paced, say } from '../../testing/index.ts';
import { turnState } from '../../workflows/messages.ts';
import { conversations, userTexts } from '../support/conversations.ts';
import { only, turnHandle } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

const asked: HookInput[] = [];

const talk = conversations();
let at: TestHouse;
let runs: Runs;
beforeAll(async () => {
  at = await testHouse({
    rules: talk.rules,
    others: [{ name: 'asks', permissions: { mode: 'default', approvers: true } }],
    definition: {
      hooks: [
        { event: 'UserPromptSubmit', run: (told) => void asked.push(told) },
        { event: 'UserPromptSubmit', run: { command: 'sh', args: ['-c', 'if grep -q BROKEN; then exit 7; fi'] } },
        {
          event: 'UserPromptSubmit',
          run: { command: 'sh', args: ['-c', 'if grep -q "bad word"; then echo Mind your words. >&2; exit 2; fi'] },
        },
      ],
    },
  });
  runs = createRuns(at.house);
});
afterAll(async () => {
  await at.close();
});

const statusOf = async (id: string) =>
  (await at.house.database.db.select().from(input).where(eq(input.id, id)))[0]?.status;
const blocked = (id: string) => until(`${id} is blocked`, async () => (await statusOf(id)) === 'hook_blocked');

it('a prompt that a hook denies starts no turn, and its sender is told why', async () => {
  const submitted = await runs.submit({ tenant: 'default', key: 'bad', text: 'a bad word', sender: 'pat' });
  if (submitted.kind !== 'accepted') throw new Error(submitted.kind);
  const { job, session } = submitted;
  const following = runs.events('default', job);
  let next = await following.next();
  while (!next.done) next = await following.next();
  const dropped = { as: 'hook_blocked', by: null, why: 'Mind your words.', at: expect.any(String) };
  const words = { state: 'done', turn: null, end: null, dropped };
  expect(next.value).toEqual({ job, text: null, goal: null, ...words });
  expect(await runs.get('default', job)).toMatchObject(words);
  expect(await at.house.database.db.$count(turn, eq(turn.session, session))).toBe(0);
  expect((await at.events(session)).map(({ event }) => event.kind)).toEqual(['job.submitted', 'input.dropped']);
  const told = asked.filter((each) => each.session === session);
  expect(told).toMatchObject([{ turn: null, source: 'prompt', text: 'a bad word', sender: 'pat' }]);
});

it('the session goes on with what comes after it', async () => {
  talk.on('a good one', () => say('Done.'));
  const { session, input: first } = await at.submit('the bad word');
  await blocked(first);
  await at.send(session, 'prompt', 'a good one');
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED', n: 1 });
  expect((await at.transcript(session)).map(({ text }) => text)).toEqual(['a good one', 'Done.']);
});

it('a steer that waits when a turn opens is asked about before it joins', async () => {
  talk.on('a good one', () => say('Done.'));
  const { session, input: first } = await at.submit('one more bad word');
  await blocked(first);
  const { db } = at.house.database;
  // Nobody tells the session of these two until the third has come.
  await storeInput(db, { id: `in_1_${session}`, session, kind: 'prompt', text: 'a good one', sender: null });
  await storeInput(db, { id: `in_2_${session}`, session, kind: 'steer', text: 'a bad word', sender: null });
  await at.send(session, 'steer', 'and a good steer');
  await at.ended(session);
  expect((await at.transcript(session)).map(({ text }) => text)).toEqual(['a good one', 'and a good steer', 'Done.']);
  expect(await statusOf(`in_2_${session}`)).toBe('hook_blocked');
});

it('a hook that fails lets the prompt in, and is reported', async () => {
  talk.on('BROKEN', () => say('Done.'));
  const { session } = await at.submit('BROKEN');
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
  expect(only(await at.events(session), 'hook.failed')).toEqual([
    { kind: 'hook.failed', layer: 'driver', hook: 'UserPromptSubmit 2 (sh)', why: 'exit code 7' },
  ]);
});

it('a steer that joins a running turn is asked about too, and what is no word of a person is not', async () => {
  const stop = hold();
  talk.on('steered', (request) =>
    userTexts(request).length > 1 ? say('Heard.') : paced(say('One two three.'), { hold: stop, holdAt: 2 }),
  );
  const { session } = await at.submit('steered');
  await stop.reached;
  const bad = await at.send(session, 'steer', 'a bad word');
  const good = await at.send(session, 'steer', 'a good one');
  const back = await at.send(session, 'call_back', 'a bad word of a machine');
  await blocked(bad);
  // `forwarded` in the store is a promise; the turn has them once they are in its state.
  await until('the turn has the others', async () => {
    const { inbox } = await turnHandle(at, `${session}/1`).query(turnState);
    return [good, back].every((id) => inbox.includes(id));
  });
  stop.release();
  await at.ended(session);
  expect((await at.transcript(session)).map(({ text }) => text)).toEqual([
    'steered',
    'One two three.',
    'a good one',
    'a bad word of a machine',
    'Heard.',
  ]);
  expect(asked.filter((each) => each.session === session).map(({ turn: at_, text }) => [at_, text])).toEqual([
    [null, 'steered'],
    [`${session}/1`, 'a bad word'],
    [`${session}/1`, 'a good one'],
  ]);
  expect(only(await at.events(session), 'input.dropped')).toEqual([
    { kind: 'input.dropped', layer: 'driver', input: bad, status: 'hook_blocked', by: null, why: 'Mind your words.' },
  ]);
});

// A message typed instead of an answer does not go through the queue.
it('of an answer to an approval with a denied message, the no is left', async () => {
  talk.on('approve me', (request) =>
    countToolResults(request) === 0 ? callTools([{ name: 'shell', arguments: { command: 'true' } }]) : say('Done.'),
  );
  const { session } = await at.submit('approve me', { agent: 'asks' });
  const { id } = await until('the question', async () =>
    (await runs.approvals('default')).find((each) => each.session === session),
  );
  await runs.answer('default', id, { answer: 'message', by: 'pat', text: 'a bad word' });
  expect(await at.ended(session)).toMatchObject({ endReason: 'ABORTED', endDetail: 'permission_rejected' });
  expect(only(await at.events(session), 'input.dropped')).toMatchObject([{ status: 'hook_blocked' }]);
  expect(JSON.stringify(await at.transcript(session))).not.toContain('bad word');
});
