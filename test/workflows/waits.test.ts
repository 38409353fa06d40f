import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { signalSession } from '../../activities/engine/temporal-engine.ts';
import { type NewJob, storeJob } from '../../activities/store/intake.ts';
import type { StoredAgent } from '../../activities/store/schema.ts';
import { defineTool } from '../../activities/tools/define-tool.ts';
import { createRuns, type OpenApproval, type Runs } from '../../client/index.ts';
import { callTools, type ChatRequest, countToolResults, lastUserText, type Reply, say } from '../../testing/index.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

let at: TestHouse;
let runs: Runs;

const ASKS: Readonly<Record<string, { name: string; arguments: unknown }>> = {
  question: { name: 'ask_user', arguments: { question: 'Which colour?' } },
  event: { name: 'wait_for', arguments: { event: 'the build is done' } },
  short: { name: 'wait_for', arguments: { event: 'never', seconds: 1 } },
  time: { name: 'wait_for', arguments: { seconds: 1 } },
  'needs a person': { name: 'report_blocked', arguments: { on: 'person', what: 'The licence key.' } },
  blocked: { name: 'report_blocked', arguments: { on: 'event', what: 'The licence server must be up.' } },
};

/** Nobody can say whether it happened, and it may not be told as if. */
const risky = defineTool({
  name: 'risky',
  description: 'Fails in a way that tells nothing.',
  input: z.strictObject({}),
  effect: 'once',
  onUnknown: 'end',
  locks: () => [{ resource: 'the world', mode: 'write' }],
  run: () => Promise.reject(new Error('the answer was lost')),
});

function rules(request: ChatRequest): Reply {
  if (lastUserText(request) === 'risky') {
    return callTools([ASKS.event!, { name: 'risky', arguments: {} }, { name: 'risky', arguments: {} }]);
  }
  const ask = ASKS[lastUserText(request)];
  return ask && countToolResults(request) === 0 ? callTools([ask]) : say('Done.');
}

beforeAll(async () => {
  at = await testHouse({
    rules,
    tools: [risky],
    agent: { tools: ['ask_user', 'wait_for', 'report_blocked', 'risky'] },
  });
  runs = createRuns(at.house);
});
afterAll(async () => {
  await at.close();
});

async function open(session: string): Promise<OpenApproval> {
  return await until('an open wait', async () =>
    (await runs.approvals('default')).find((each) => each.session === session),
  );
}

/** An event is waited for, by an agent that no config has. */
async function submitAs(agent: StoredAgent, workspace: NewJob['workspace']): Promise<string> {
  const { database, temporal, taskQueue } = at.house;
  const job = { tenant: 'default', key: 'absolute-end', fingerprint: 'f', ticket: null, sender: null, text: 'event' };
  const stored = await storeJob(database.db, { ...job, agent, workspace });
  if (stored.kind !== 'accepted') throw new Error(stored.kind);
  await signalSession(temporal, taskQueue, stored.session);
  return stored.session;
}

async function result(session: string): Promise<string | undefined> {
  const messages = await at.transcript(session);
  return messages.find((message) => message.kind === 'tool_result')?.text;
}

it('the answer of a person becomes the result of the call, and is no input of its own', async () => {
  const { session } = await at.submit('question');
  const { id, asked } = await open(session);
  expect(asked).toMatchObject({ kind: 'question', subject: 'Which colour?' });
  await runs.answer('default', id, { answer: 'message', by: 'pat', text: 'Blue.' });
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
  expect((await at.transcript(session)).map((message) => message.kind)).toEqual([
    'user',
    'assistant',
    'tool_result',
    'assistant',
  ]);
  expect(await result(session)).toBe('Blue.');
});

it('an event that is reported ends the wait for it', async () => {
  const { session } = await at.submit('event');
  const { id } = await open(session);
  await runs.answer('default', id, { answer: 'message', by: 'ci', text: 'The build is green.' });
  await at.ended(session);
  expect(await result(session)).toBe('The build is green.');
});

it('a steering message cuts a wait short and is read next; nobody need answer it any more', async () => {
  const { session } = await at.submit('event');
  const { id } = await open(session);
  await at.send(session, 'steer', 'Never mind the build.');
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
  expect(await result(session)).toBe('The wait was interrupted by a message, which follows.');
  expect(await runs.answer('default', id, { answer: 'message', by: 'ci', text: 'Green.' })).toEqual({
    kind: 'answered_before',
    answer: 'cancelled',
    by: null,
  });
  expect((await at.transcript(session)).map((message) => message.kind)).toEqual([
    'user',
    'assistant',
    'tool_result',
    'user',
    'assistant',
  ]);
});

it('a time is waited for to its end', async () => {
  const { session } = await at.submit('time');
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
  expect(await result(session)).toBe('The time is over.');
});

// Trap: an absolute end that is only looked at before a sample is none for a turn that waits for a day.
it('an absolute end cuts a wait short: ABORTED/deadline, and nothing can be answered any more', async () => {
  const agent = at.house.catalogue.agent('tester');
  const found = at.house.catalogue.workspace(undefined, 'absolute-end');
  if (!agent || !found.ok) throw new Error('the house has no agent or workspace');
  const notAfterMs = Date.now() + 6_000;
  const session = await submitAs({ ...agent, limits: { ...agent.limits, notAfterMs } }, found.workspace);
  const { id } = await open(session);
  const end = await at.ended(session);
  expect(end).toMatchObject({ endReason: 'ABORTED', endDetail: 'deadline', endDecidedBy: 'runtime', endStep: 1 });
  expect(end.endSignal).toMatchObject({ name: 'limit', limit: 'not_after', allowed: notAfterMs });
  expect(await result(session)).toBe(
    'Stopped while it waited: the turn was stopped before what it waited for came. It had no effect.',
  );
  expect(await runs.answer('default', id, { answer: 'message', by: 'ci', text: 'Green.' })).toEqual({
    kind: 'stale',
    why: 'turn_ended',
  });
});

it('what has not come in time ends the turn BLOCKED, and comes in as the next turn when it does', async () => {
  const { session } = await at.submit('short');
  const { id } = await open(session);
  expect(await at.ended(session)).toMatchObject({
    endReason: 'BLOCKED',
    endDetail: 'external_dependency',
    endDecidedBy: 'model',
  });
  expect(await runs.answer('default', id, { answer: 'message', by: 'ci', text: 'It has happened.' })).toEqual({
    kind: 'recorded',
  });
  expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED' });
  const texts = (await at.transcript(session)).flatMap((message) => (message.kind === 'user' ? [message.text] : []));
  expect(texts).toEqual([
    'short',
    'Meanwhile the event "never" which you waited for has been reported by ci:\nIt has happened.',
  ]);
});

it('a report ends the turn BLOCKED at once', async () => {
  const { session } = await at.submit('blocked');
  expect(await at.ended(session)).toMatchObject({
    endReason: 'BLOCKED',
    endDetail: 'external_dependency',
    endPhase: 'waiting',
  });
});

it('what a report needs stays open: the answer starts the next turn, once', async () => {
  const { session } = await at.submit('needs a person');
  expect(await at.ended(session)).toMatchObject({ endReason: 'BLOCKED', endDetail: 'awaiting_input' });
  const { id, asked, expiresAt } = await open(session);
  expect(asked).toMatchObject({ kind: 'question', subject: 'The licence key.' });
  expect(Date.parse(expiresAt ?? '')).toBeGreaterThan(Date.now() + 29 * 86_400_000);
  await at.send(session, 'prompt', 'something else meanwhile');
  await at.ended(session, 2);
  // An answer in words is welcome also when the session has gone on.
  expect(await runs.answer('default', id, { answer: 'message', by: 'pat', text: 'ABC-1' })).toEqual({
    kind: 'recorded',
  });
  expect(await at.ended(session, 3)).toMatchObject({ endReason: 'COMPLETED' });
  const texts = (await at.transcript(session)).flatMap((message) => (message.kind === 'user' ? [message.text] : []));
  expect(texts).toEqual([
    'needs a person',
    'something else meanwhile',
    'Meanwhile your question "The licence key." has been answered by pat:\nABC-1',
  ]);
  expect(await runs.answer('default', id, { answer: 'message', by: 'sam', text: 'ABC-2' })).toEqual({
    kind: 'answered_before',
    answer: 'message',
    by: 'pat',
  });
});

it('a cancel ends a wait at once, and the waiting was no running time', async () => {
  const job = await at.submit('event');
  await open(job.session);
  await runs.cancel('default', job.job, { by: 'pat' });
  expect(await at.ended(job.session)).toMatchObject({
    endReason: 'ABORTED',
    endDetail: 'user_cancel',
    endPhase: 'waiting',
  });
});

// What ends on an unknown outcome has nothing to wait for, and begins nothing more.
it('an outcome that nobody knows ends the turn at once, whatever else waits or is queued', async () => {
  const { session } = await at.submit('risky');
  const ended = await at.ended(session, 1, 60_000);
  expect(ended).toMatchObject({ endReason: 'INTERRUPTED', endDetail: 'unknown_outcome', recordedBy: 'recovery' });
  const kinds = (await at.events(session)).map(({ event }) => event.kind);
  expect(kinds.filter((kind) => kind === 'call.started')).toHaveLength(1);
});
