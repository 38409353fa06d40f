import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { call, effect } from '../../activities/store/schema.ts';
import { createRuns, type Runs } from '../../client/index.ts';
import { callTools, countToolResults, say } from '../../testing/index.ts';
import { turnWorkflowId } from '../../workflows/messages.ts';
import { conversations, userTexts } from '../support/conversations.ts';
import { closedStatus, only, stopRecovery, sweepNow, turnHandle } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

const WAIT_MS = 500;

const talk = conversations();
let at: TestHouse;
let runs: Runs;
beforeAll(async () => {
  // The one worker there is; whatever is handed in later lies on another machine.
  vi.stubEnv('PAWL_HOST_ID', 'here');
  at = await testHouse({
    rules: talk.rules,
    definition: { workspaceKind: 'host' },
    agent: { limits: { workspaceWaitMs: WAIT_MS } },
  });
  runs = createRuns(at.house);
  await stopRecovery(at);
});
afterAll(async () => {
  vi.unstubAllEnvs();
  await at.close();
});

it('files of a machine that is there: its worker makes the calls', async () => {
  talk.on('here', (request) =>
    countToolResults(request) === 0 ? callTools([{ name: 'list_files', arguments: {} }]) : say('Done.'),
  );
  const { session } = await at.submit('here');
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED', endStep: 1 });
});

/** A job whose files lie on a machine that is not there. */
async function submitElsewhere(text: string) {
  vi.stubEnv('PAWL_HOST_ID', 'gone');
  const submitted = at.submit(text);
  vi.stubEnv('PAWL_HOST_ID', 'here');
  return await submitted;
}

/** The turn's workflow has given up, and recovery writes its end. */
async function givenUp(turn: string) {
  expect(await closedStatus(at, turnWorkflowId(turn))).toBe('FAILED');
  await sweepNow(at);
  const [session, n] = turn.split('/');
  return await at.ended(session!, Number(n));
}

const write = () => callTools([{ name: 'write_file', arguments: { path: 'f', content: 'x' } }]);

it('files of a machine that does not come back: INTERRUPTED/workspace_lost, the call was never made, and a second turn goes on', async () => {
  talk.on('gone', (request) => (userTexts(request).length === 1 ? write() : say('I can still talk.')));
  const { session, job, input } = await submitElsewhere('gone');
  const turn = `${session}/1`;
  expect(await givenUp(turn)).toMatchObject({
    endReason: 'INTERRUPTED',
    endDetail: 'workspace_lost',
    endDecidedBy: 'runtime',
    endSignal: { name: 'fault', type: 'turn.workspace_lost' },
    recordedBy: 'recovery',
  });
  const { events: history = [] } = await turnHandle(at, turn).fetchHistory();
  const failure = history?.at(-1)?.workflowExecutionFailedEventAttributes?.failure;
  expect(failure?.applicationFailureInfo).toMatchObject({ type: 'turn.workspace_lost', nonRetryable: true });
  const { db } = at.house.database;
  const [ledger] = await db.select().from(effect).where(eq(effect.turn, turn));
  const [made] = await db.select().from(call).where(eq(call.turn, turn));
  expect([ledger?.state, made?.status]).toEqual(['intended', null]);

  expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED', origin: input });
  const events = await at.events(session);
  expect(only(events, 'turn.ended')).toHaveLength(2);
  expect(only(events, 'call.started')).toEqual([]);
  expect(only(events, 'job.continues', turn)).toMatchObject([{ n: 1, of: 3 }]);
  expect(await at.transcript(session)).toMatchObject([
    { kind: 'user', text: 'gone' },
    { kind: 'assistant' },
    { kind: 'tool_result', text: expect.stringMatching(/^Not started/) },
    { kind: 'interruption', turn },
    {
      kind: 'user',
      source: 'directive',
      continues: turn,
      text: expect.stringMatching(/^The turn before .* no machine that has the files/),
    },
    { kind: 'assistant', text: 'I can still talk.' },
  ]);
  const { state, turn: newest, text } = (await runs.get('default', job))!;
  expect([state, newest, text]).toEqual(['done', `${session}/2`, 'I can still talk.']);
});

it('the same again and again: three more turns by itself, then a person has to look', async () => {
  talk.on('gone for good', write);
  const { session, job } = await submitElsewhere('gone for good');
  for (const n of [1, 2, 3, 4]) expect(await givenUp(`${session}/${n}`)).toMatchObject({ endDetail: 'workspace_lost' });
  await until('the session rests', async () => only(await at.events(session), 'driver.ended').length === 1);
  expect(only(await at.events(session), 'job.continues').map(({ n }) => n)).toEqual([1, 2, 3]);
  expect(only(await at.events(session), 'turn.opened').map(({ n }) => n)).toEqual([1, 2, 3, 4]);
  expect(await runs.get('default', job)).toMatchObject({ state: 'needs_attention', turn: `${session}/4` });
  // The session lives on for what needs no files.
  talk.on('gone for good', () => say('I can still talk.'));
  await at.send(session, 'prompt', 'are you there?');
  expect(await at.ended(session, 5)).toMatchObject({ endReason: 'COMPLETED' });
});
