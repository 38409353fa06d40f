import { randomBytes } from 'node:crypto';
import { WorkflowNotFoundError } from '@temporalio/client';
import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { storeJob } from '../../activities/store/intake.ts';
import { advance } from '../../activities/store/queue.ts';
import { turn as turns } from '../../activities/store/schema.ts';
import { createRuns, type Runs } from '../../client/index.ts';
import { hold, paced, say } from '../../testing/index.ts';
import { openTurn } from '../../workflows/core/turn-state.ts';
import { type TurnArgs, turnWorkflowId } from '../../workflows/messages.ts';
import { conversations, userTexts } from '../support/conversations.ts';
import { closedStatus, only, stopRecovery, sweepNow, turnHandle } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

const talk = conversations();
let at: TestHouse;
let runs: Runs;
beforeAll(async () => {
  at = await testHouse({ rules: talk.rules });
  runs = createRuns(at.house);
  await stopRecovery(at);
});
afterAll(() => at.close());

/** The first reply stops in its middle, for good; the one to the next turn comes. */
function stopsOnce(text: string) {
  const stop = hold();
  talk.on(text, (request) =>
    userTexts(request).length === 1 ? paced(say('One two three.'), { hold: stop, holdAt: 2 }) : say('Done.'),
  );
  return stop;
}

/** As `temporal workflow delete` does: the engine does not know it any more. */
async function deleteFromEngine(turn: string): Promise<void> {
  const { workflowService, options } = at.house.temporal;
  const workflowExecution = { workflowId: turnWorkflowId(turn) };
  await workflowService.deleteWorkflowExecution({ namespace: options.namespace, workflowExecution });
  await until('the engine has forgotten it', async () => {
    try {
      await turnHandle(at, turn).describe();
      return false;
    } catch (error) {
      return error instanceof WorkflowNotFoundError;
    }
  });
}

/** A job whose first turn is started as the session would, but with a time of its own. */
async function submitForMs(text: string, workflowRunTimeout: number) {
  const { db } = at.house.database;
  const key = randomBytes(8).toString('hex');
  const found = at.house.catalogue.workspace(undefined, key);
  const agent = at.house.catalogue.agent(undefined);
  if (!found.ok || !agent) throw new Error('the test names no usable workspace or agent');
  const job = { tenant: 'default', key, fingerprint: text, agent, workspace: found.workspace, text };
  const stored = await storeJob(db, { ...job, ticket: null, sender: null });
  if (stored.kind !== 'accepted') throw new Error(stored.kind);
  const { next } = await advance(db, stored.session, null, () => []);
  if (next.kind !== 'start') throw new Error(next.kind);
  const { turn, tools, workspaceQueue, head, inputs, rules, limits, carried, agent: pinned } = next.turn;
  const state = openTurn({ head, inputs, rules, limits, carried, atMs: Date.now() });
  const args: TurnArgs = { turn, session: stored.session, agent: pinned, tools, workspaceQueue, state };
  const { taskQueue } = at.house;
  await at.house.temporal.workflow.start('turnWorkflow', {
    workflowId: turnWorkflowId(turn),
    taskQueue,
    args: [args],
    workflowRunTimeout,
  });
  return { ...stored, turn };
}

/** One turn was cut off, one went on, and the job has the answer of the second. */
async function wentOn({ session, job, input }: { session: string; job: string; input: string }, what: string) {
  const turn = `${session}/1`;
  expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED', origin: input });
  expect(await at.transcript(session)).toMatchObject([
    { kind: 'user' },
    { kind: 'interruption', turn },
    { kind: 'user', source: 'directive', continues: turn, text: expect.stringContaining(what) },
    { kind: 'assistant', text: 'Done.' },
  ]);
  const events = await at.events(session);
  expect(only(events, 'job.continues')).toMatchObject([{ n: 1, of: 3 }]);
  expect(only(events, 'stream.ended').map(({ reason }) => reason)).toEqual(['lost', 'stop']);
  expect(await runs.get('default', job)).toMatchObject({ state: 'done', turn: `${session}/2`, text: 'Done.' });
  expect(await runs.why('default', turn)).toMatchObject({ goesOn: { state: 'opened', turn: `${session}/2` } });
}

describe.concurrent('a job goes on by itself in one more turn', () => {
  it('when the engine has forgotten its workflow: INTERRUPTED/lost', async () => {
    const stop = stopsOnce('is forgotten');
    const submitted = await at.submit('is forgotten');
    const turn = `${submitted.session}/1`;
    await stop.reached;
    await deleteFromEngine(turn);
    // It is not taken for lost in its first minute: its start may be on its way.
    await sweepNow(at);
    const { db } = at.house.database;
    const ended = await db.select({ at: turns.endedAt }).from(turns).where(eq(turns.id, turn));
    expect(ended).toEqual([{ at: null }]);
    await db
      .update(turns)
      .set({ openedAt: sql`${turns.openedAt} - interval '1 minute'` })
      .where(eq(turns.id, turn));
    await sweepNow(at);
    expect(await at.ended(submitted.session)).toMatchObject({
      endReason: 'INTERRUPTED',
      endDetail: 'lost',
      endDecidedBy: 'runtime',
      endSignal: { name: 'engine', event: 'unknown' },
      recordedBy: 'recovery',
    });
    await wentOn(submitted, 'its process was lost');
  });

  it('when the engine has closed its workflow for its time: INTERRUPTED/timed_out', async () => {
    const stop = stopsOnce('takes too long');
    const submitted = await submitForMs('takes too long', 2_000);
    await stop.reached;
    expect(await closedStatus(at, turnWorkflowId(submitted.turn))).toBe('TIMED_OUT');
    await sweepNow(at);
    expect(await at.ended(submitted.session)).toMatchObject({
      endReason: 'INTERRUPTED',
      endDetail: 'timed_out',
      endDecidedBy: 'runtime',
      endSignal: { name: 'engine', event: 'timed_out' },
      recordedBy: 'recovery',
    });
    await wentOn(submitted, 'its time in the workflow engine was over');
  });
});
