import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { call, effect } from '../../activities/store/schema.ts';
import { callTools, countToolResults, say } from '../../testing/index.ts';
import { turnWorkflowId } from '../../workflows/messages.ts';
import { conversations, userTexts } from '../support/conversations.ts';
import { closedStatus, only, turnHandle } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';

const WAIT_MS = 1_500;

const talk = conversations();
let at: TestHouse;
beforeAll(async () => {
  // The one worker there is; whatever is handed in later lies on another machine.
  vi.stubEnv('PAWL_HOST_ID', 'here');
  at = await testHouse({
    rules: talk.rules,
    definition: { workspaceKind: 'host' },
    agent: { limits: { workspaceWaitMs: WAIT_MS } },
  });
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

it('files of a machine that does not come back: INTERRUPTED/workspace_lost, and the call was never made', {
  timeout: 60_000,
}, async () => {
  talk.on('gone', (request) =>
    userTexts(request).length === 1
      ? callTools([{ name: 'write_file', arguments: { path: 'f', content: 'x' } }])
      : say('I can still talk.'),
  );
  vi.stubEnv('PAWL_HOST_ID', 'gone');
  const { session } = await at.submit('gone');
  vi.stubEnv('PAWL_HOST_ID', 'here');
  const turn = `${session}/1`;
  expect(await at.ended(session, 1, 45_000)).toMatchObject({
    endReason: 'INTERRUPTED',
    endDetail: 'workspace_lost',
    endDecidedBy: 'runtime',
    endSignal: { name: 'fault', type: 'turn.workspace_lost' },
    recordedBy: 'recovery',
  });
  expect(await closedStatus(at, turnWorkflowId(turn))).toBe('FAILED');
  const { events: history = [] } = await turnHandle(at, turn).fetchHistory();
  const failure = history?.at(-1)?.workflowExecutionFailedEventAttributes?.failure;
  expect(failure?.applicationFailureInfo).toMatchObject({ type: 'turn.workspace_lost', nonRetryable: true });
  const events = await at.events(session);
  expect(only(events, 'turn.ended')).toHaveLength(1);
  expect(only(events, 'call.started')).toEqual([]);
  const { db } = at.house.database;
  const [ledger] = await db.select().from(effect).where(eq(effect.turn, turn));
  const [made] = await db.select().from(call).where(eq(call.turn, turn));
  expect([ledger?.state, made?.status]).toEqual(['intended', null]);
  expect(await at.transcript(session)).toMatchObject([
    { kind: 'user' },
    { kind: 'assistant' },
    { kind: 'tool_result', text: expect.stringMatching(/^Not started/) },
    { kind: 'interruption' },
  ]);
  // The session lives on for what needs no files.
  await at.send(session, 'prompt', 'are you there?');
  expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED' });
});
