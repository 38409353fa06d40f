import { afterAll, beforeAll, expect, it } from 'vitest';
import { createRuns, type Runs } from '../../client/index.ts';
import { callTools, type Hold, hold, paced, say } from '../../testing/index.ts';
import type { RunningWorker } from '../../worker/start-worker.ts';
import { conversations, userTexts } from '../support/conversations.ts';
import { only } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

const talk = conversations();
let at: TestHouse;
let runs: Runs;
let worker: RunningWorker;

beforeAll(async () => {
  at = await testHouse({ rules: talk.rules, worker: false, agent: { tools: ['wait_for', 'ask_user'] } });
  runs = createRuns(at.house);
  worker = await at.startWorker();
});
afterAll(async () => {
  await at.close();
});

const wait = (event: string, seconds?: number) => ({
  name: 'wait_for',
  arguments: seconds === undefined ? { event } : { event, seconds },
});

/** A model that waits for these at once, and says so when all have come. */
function waitsFor(name: string, waits: readonly { name: string; arguments: unknown }[], stop?: Hold): void {
  talk.on(name, (request) => {
    if (request.messages.some(({ role }) => role === 'tool')) return say('Done.');
    return stop ? paced(callTools(waits), { hold: stop }) : callTools(waits);
  });
}

async function openWaits(session: string, count: number): Promise<void> {
  await until(
    `${count} open waits`,
    async () => (await runs.approvals('default')).filter((each) => each.session === session).length === count,
  );
}

async function results(session: string): Promise<string[]> {
  return (await at.transcript(session)).flatMap((message) => (message.kind === 'tool_result' ? [message.text] : []));
}

it('an event ends every open wait for its name, and no other', async () => {
  waitsFor('two of three', [wait('build'), wait('deploy'), wait('build')]);
  const { session, job } = await at.submit('two of three');
  await openWaits(session, 3);
  expect(await runs.report('default', session, { name: ' build ', id: 'e1', text: 'green', by: 'ci' })).toEqual({
    id: 'e1',
    isNew: true,
    waits: 2,
    goal: null,
  });
  await openWaits(session, 1);
  // A job names its session.
  expect(await runs.report('default', job, { name: 'deploy', by: 'ci' })).toMatchObject({ isNew: true, waits: 1 });
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
  expect(await results(session)).toEqual(['green', 'It has happened.', 'green']);
  expect(only(await at.events(session), 'event.reported').map(({ waits }) => waits)).toEqual([2, 1]);
});

it('the same id twice, and twenty times at once, is one event', async () => {
  waitsFor('once only', [wait('tick'), wait('tock')]);
  const { session } = await at.submit('once only');
  await openWaits(session, 2);
  const told = await Promise.all(
    Array.from({ length: 20 }, () =>
      runs.report('default', session, { name: 'tick', id: 'e1', text: 'now', by: 'ci' }),
    ),
  );
  expect(told.filter((each) => each?.isNew)).toHaveLength(1);
  expect(new Set(told.map((each) => each?.waits))).toEqual(new Set([1]));
  // Under another name it is still the same event.
  expect(await runs.report('default', session, { name: 'tock', id: 'e1', by: 'ci' })).toEqual({
    id: 'e1',
    isNew: false,
    waits: 1,
    goal: null,
  });
  await openWaits(session, 1);
  await runs.report('default', session, { name: 'tock', id: 'e2', text: 'then', by: 'ci' });
  await at.ended(session);
  expect(await results(session)).toEqual(['now', 'then']);
});

// Trap: a CI that is quicker than the model would otherwise be waited for until the time is over.
it('one that comes in the turn before its wait is kept for it, and is taken once', async () => {
  const stop = hold();
  waitsFor('quick', [wait('build'), wait('build')], stop);
  const { session } = await at.submit('quick');
  await stop.reached;
  expect(await runs.report('default', session, { name: 'build', text: 'first', by: 'ci' })).toMatchObject({ waits: 0 });
  expect(await runs.report('default', session, { name: 'other', text: 'no', by: 'ci' })).toMatchObject({ waits: 0 });
  stop.release();
  await openWaits(session, 1);
  await runs.report('default', session, { name: 'build', text: 'second', by: 'ci' });
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
  expect((await results(session)).toSorted()).toEqual(['first', 'second']);
});

it('one that came before the turn was opened is not what the turn waits for', async () => {
  waitsFor('anew', [wait('build')]);
  const { session } = await at.submit('anew');
  await openWaits(session, 1);
  await runs.report('default', session, { name: 'build', id: 'old', text: 'old', by: 'ci' });
  await at.ended(session);
  expect(await runs.report('default', session, { name: 'build', id: 'between', by: 'ci' })).toMatchObject({ waits: 0 });
  talk.on('anew', (request) =>
    userTexts(request).length === 2 && request.messages.at(-1)?.role === 'user'
      ? callTools([wait('build')])
      : say('Done.'),
  );
  await at.send(session, 'prompt', 'once more');
  await openWaits(session, 1);
  await runs.report('default', session, { name: 'build', id: 'new', text: 'new', by: 'ci' });
  await at.ended(session, 2);
  expect(await results(session)).toEqual(['old', 'new']);
});

it('one that comes after its turn ended BLOCKED, and while no worker runs, starts the next turn', async () => {
  waitsFor('late event', [wait('approval of the board', 1)]);
  const { session } = await at.submit('late event');
  expect(await at.ended(session)).toMatchObject({ endReason: 'BLOCKED', endDetail: 'external_dependency' });
  await worker.stop();
  const name = 'approval of the board';
  expect(await runs.report('default', session, { name, text: 'yes', by: 'board' })).toMatchObject({ waits: 1 });
  worker = await at.startWorker();
  expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED' });
  const texts = (await at.transcript(session)).flatMap((message) => (message.kind === 'user' ? [message.text] : []));
  expect(texts).toEqual([
    'late event',
    'Meanwhile the event "approval of the board" which you waited for has been reported by board:\nyes',
  ]);
});

// Trap: the answer's input is bound to the turn at once, and a look of the session in between would pass it on.
it('the answer to one wait is no message that cuts the other one short', async () => {
  waitsFor('two waits', [{ name: 'ask_user', arguments: { question: 'Which?' } }, wait('build')]);
  const { session } = await at.submit('two waits');
  await openWaits(session, 2);
  const question = (await runs.approvals('default')).find(
    (each) => each.session === session && each.asked.kind === 'question',
  );
  await worker.stop();
  const answered = runs.answer('default', question?.id ?? '', { answer: 'message', by: 'pat', text: 'This one.' });
  await at.send(session, 'wake', 'only to look');
  worker = await at.startWorker();
  await answered;
  await openWaits(session, 1);
  await runs.report('default', session, { name: 'build', text: 'green', by: 'ci' });
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
  expect(await results(session)).toEqual(['This one.', 'green']);
});

it.each(['ses_nobody', 'job_nobody', '', 'a\0b'])('%j is no session', async (of) => {
  expect(await runs.report('default', of, { name: 'build', by: 'ci' })).toBeNull();
});

it('another tenant’s session looks like an unknown one', async () => {
  talk.on('theirs', () => say('Done.'));
  const { session } = await at.submit('theirs');
  await at.ended(session);
  expect(await runs.report('somebody', session, { name: 'build', by: 'ci' })).toBeNull();
});
