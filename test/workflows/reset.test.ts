import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { turn as turnTable } from '../../activities/store/schema.ts';
import { type ChatRequest, callTools, countToolResults, hold, paced, say } from '../../testing/index.ts';
import { turnWorkflowId } from '../../workflows/messages.ts';
import { conversations } from '../support/conversations.ts';
import { closedStatus, only, turnHandle } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

const talk = conversations();
let at: TestHouse;
beforeAll(async () => {
  at = await testHouse({ rules: talk.rules, expectKey: true });
});
afterAll(async () => {
  await at.close();
});

/** What `temporal workflow reset --type FirstWorkflowTask` does. Returns the new run. */
async function resetToStart(turn: string): Promise<string> {
  const { workflowService, options } = at.house.temporal;
  const handle = turnHandle(at, turn);
  const { runId } = await handle.describe();
  const { events } = await handle.fetchHistory();
  const first = events?.find((event) => event.workflowTaskCompletedEventAttributes)?.eventId;
  const answer = await workflowService.resetWorkflowExecution({
    namespace: options.namespace,
    workflowExecution: { workflowId: turnWorkflowId(turn), runId },
    reason: 'a test',
    workflowTaskFinishEventId: first ?? null,
    requestId: randomUUID(),
  });
  return answer.runId;
}

async function generationOf(turn: string) {
  const [row] = await at.house.database.db.select().from(turnTable).where(eq(turnTable.id, turn));
  return row?.generation;
}

const append = callTools([
  { name: 'shell', arguments: { command: 'echo once >> log' } },
  { name: 'write_file', arguments: { path: 'made.txt', content: 'made' } },
]);

describe.concurrent('a turn that somebody resets', () => {
  it('in its second sample: goes through its past without acting again, and ends once', {
    timeout: 60_000,
  }, async () => {
    const workspace = 'reset-sample';
    mkdirSync(join(at.workspaces, workspace), { recursive: true });
    const stop = hold();
    talk.on(workspace, (request: ChatRequest) =>
      countToolResults(request) === 0 ? append : paced(say('Done.'), { hold: stop }),
    );
    const { session } = await at.submit(workspace, { workspace });
    const turn = `${session}/1`;
    await stop.reached;
    expect(await generationOf(turn)).toBe(0);
    const run = await resetToStart(turn);
    await until('the new run samples', () => talk.requestsOf(at.provider, workspace).length === 3);
    stop.release();
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED', endStep: 1 });
    expect(await closedStatus(at, turnWorkflowId(turn))).toBe('COMPLETED');
    expect((await turnHandle(at, turn).describe()).runId).toBe(run);
    expect(await generationOf(turn)).toBe(1);
    const events = await at.events(session);
    expect(only(events, 'turn.reset')).toEqual([{ kind: 'turn.reset', layer: 'turn', generation: 1 }]);
    expect(only(events, 'turn.ended')).toHaveLength(1);
    expect(only(events, 'call.started')).toHaveLength(2);
    expect(readFileSync(join(at.workspaces, workspace, 'log'), 'utf8')).toBe('once\n');
    // One request for the first sample; the second was asked for again under the same key.
    const keys = talk.requestsOf(at.provider, workspace).map(({ headers }) => headers['idempotency-key']);
    expect(keys[1]).toBe(keys[2]);
    expect((await at.transcript(session)).map(({ kind }) => kind)).toEqual([
      'user',
      'assistant',
      'tool_result',
      'tool_result',
      'assistant',
    ]);
  });

  it('while a command runs: the command is not run twice, and the model is told that nobody knows', {
    timeout: 60_000,
  }, async () => {
    const workspace = 'reset-command';
    mkdirSync(join(at.workspaces, workspace), { recursive: true });
    talk.on(workspace, (request: ChatRequest) =>
      countToolResults(request) === 0
        ? callTools([{ name: 'shell', arguments: { command: 'echo once >> log; exec sleep 100' } }])
        : say('I see.'),
    );
    const { session } = await at.submit(workspace, { workspace });
    const turn = `${session}/1`;
    await until('the command has begun', () => existsSync(join(at.workspaces, workspace, 'log')));
    await resetToStart(turn);
    expect(await at.ended(session, 1, 45_000)).toMatchObject({ endReason: 'COMPLETED' });
    expect(readFileSync(join(at.workspaces, workspace, 'log'), 'utf8')).toBe('once\n');
    const events = await at.events(session);
    expect(only(events, 'turn.ended')).toHaveLength(1);
    expect(only(events, 'call.finished')).toMatchObject([{ status: 'unknown' }]);
    expect((await at.transcript(session))[2]).toMatchObject({
      kind: 'tool_result',
      isError: true,
      text: expect.stringMatching(/^Interrupted while it ran/),
    });
  });

  it('after its end: the new run closes as Failed turn.already_ended, and the end stands', {
    timeout: 60_000,
  }, async () => {
    talk.on('reset too late', () => say('Done.'));
    const { session } = await at.submit('reset too late');
    const turn = `${session}/1`;
    await at.ended(session);
    expect(await closedStatus(at, turnWorkflowId(turn))).toBe('COMPLETED');
    const before = await at.events(session);
    await resetToStart(turn);
    expect(await closedStatus(at, turnWorkflowId(turn))).toBe('FAILED');
    const { events } = await turnHandle(at, turn).fetchHistory();
    expect(events?.at(-1)?.workflowExecutionFailedEventAttributes?.failure?.applicationFailureInfo).toMatchObject({
      type: 'turn.already_ended',
      nonRetryable: true,
    });
    expect(only(await at.events(session), 'turn.ended')).toEqual(only(before, 'turn.ended'));
    expect(talk.requestsOf(at.provider, 'reset too late')).toHaveLength(1);
  });
});
