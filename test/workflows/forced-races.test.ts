import { ScheduleOverlapPolicy, WorkflowNotFoundError } from '@temporalio/client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { callTools, countToolResults, hold, paced, say } from '../../testing/index.ts';
import { turnState, turnWorkflowId } from '../../workflows/messages.ts';
import { activityHolds } from '../support/activity-holds.ts';
import { conversations, newestUserText } from '../support/conversations.ts';
import {
  cancelByEngine,
  cancelsOf,
  cancelTurn,
  closedStatus,
  lengthen,
  only,
  turnHandle,
} from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

/** `FORCED_RACES=100` is the whole proof; the suite takes a smaller one. */
const TIMES = Number(process.env.FORCED_RACES ?? 10);
/** Few enough that each goes on at once: the order is what is tested, not the load. */
const AT_ONCE = 12;

const talk = conversations();
const holds = activityHolds();
let at: TestHouse;
beforeAll(async () => {
  at = await testHouse({ rules: talk.rules, expectKey: true, interceptors: holds.interceptors });
});
afterAll(async () => {
  await at.close();
});

/** The same race again and again, some at once; the test decides each time what comes first. */
function race(name: string, once: (text: string) => Promise<void>): void {
  it(`${name}, ${TIMES} times`, { timeout: 600_000 }, async () => {
    let n = 0;
    const runner = async () => {
      while (n < TIMES) await once(`${name} ${(n += 1)}`);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, runner));
  });
}

/** A turn in its first sample, which the provider answers when it is told to. */
async function sampling(text: string) {
  const answer = hold();
  talk.on(text, (request) =>
    newestUserText(request) === text ? paced(say('Done.'), { hold: answer }) : say('That too.'),
  );
  const { session } = await at.submit(text);
  await answer.reached;
  const turn = `${session}/1`;
  return { session, turn, workflow: turnWorkflowId(turn), answer };
}

interface Once {
  readonly session: string;
  readonly end: readonly [end: string, decidedBy: string, signal: object];
  readonly engine: 'COMPLETED' | 'CANCELLED' | 'TERMINATED';
  /** What each cancel was answered, in their order. */
  readonly cancels: readonly string[];
  readonly recordedBy?: 'turn' | 'recovery';
}

/** The one end of the first turn, everywhere where it is told. */
async function expectOnce({ session, end, engine, cancels, recordedBy = 'turn' }: Once) {
  const turn = `${session}/1`;
  const row = await at.ended(session);
  const events = await at.events(session);
  const found = {
    end: [`${row.endReason}/${row.endDetail}`, row.endDecidedBy, row.endSignal],
    recordedBy: row.recordedBy,
    ends: only(events, 'turn.ended', turn).length,
    engine: await closedStatus(at, turnWorkflowId(turn)),
    cancels: (await cancelsOf(at, turn)).map(({ answer }) => answer),
    answered: only(events, 'cancel.answered', turn).length,
  };
  expect(found).toEqual({ end, recordedBy, ends: 1, engine, cancels, answered: cancels.length });
}

const byCancel = (id: string) => ['ABORTED/user_cancel', 'user', { name: 'cancel_request', id }] as const;
const COMPLETED = ['COMPLETED/final_answer', 'model', { name: 'model_stop' }] as const;

/** A message that came too late for its turn opens the next one, once. */
async function expectNext(session: string, input: string) {
  expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED', input });
  expect((await at.transcript(session)).map(({ kind }) => kind)).toEqual(['user', 'assistant', 'user', 'assistant']);
}

race('a cancel wins over an answer that is stored and not heard of', async (text) => {
  const { session, turn, workflow, answer } = await sampling(text);
  const answered = holds.next(workflow, 'sample', 'after');
  answer.release();
  await answered.reached;
  const { id } = await cancelTurn(at, turn, 'racer');
  answered.release();
  await expectOnce({ session, end: byCancel(id), engine: 'CANCELLED', cancels: ['took'] });
  expect((await at.transcript(session)).map(({ kind }) => kind)).toEqual(['user', 'assistant', 'interruption']);
});

race('a message joins while the answer is stored and not heard of', async (text) => {
  const { session, turn, workflow, answer } = await sampling(text);
  const answered = holds.next(workflow, 'sample', 'after');
  answer.release();
  await answered.reached;
  const input = await at.send(session, 'steer', 'More.');
  await until('the turn has heard of it', async () =>
    (await turnHandle(at, turn).query(turnState)).inbox.includes(input),
  );
  answered.release();
  await expectOnce({ session, end: COMPLETED, engine: 'COMPLETED', cancels: [] });
  expect((await at.transcript(session)).map(({ kind }) => kind)).toEqual(['user', 'assistant', 'user', 'assistant']);
  expect(only(await at.events(session), 'turn.opened')).toHaveLength(1);
});

race('an end that is asked for stands, and a cancel and a message come too late', async (text) => {
  const { session, turn, workflow, answer } = await sampling(text);
  const ending = holds.next(workflow, 'endTurn', 'before');
  answer.release();
  await ending.reached;
  const [input, { stored }] = await Promise.all([at.send(session, 'steer', 'More.'), cancelTurn(at, turn, 'racer')]);
  expect(stored).toBe('stored');
  ending.release();
  await expectOnce({ session, end: COMPLETED, engine: 'COMPLETED', cancels: ['already_ended'] });
  await expectNext(session, input);
});

race('an end that is written stands, whoever comes before the engine knows of it', async (text) => {
  const { session, turn, workflow, answer } = await sampling(text);
  const ended = holds.next(workflow, 'endTurn', 'after');
  answer.release();
  await ended.reached;
  const [input, { stored }] = await Promise.all([
    at.send(session, 'steer', 'More.'),
    cancelTurn(at, turn, 'racer'),
    cancelByEngine(at, turn),
  ]);
  expect(stored).toBe('already_ended');
  ended.release();
  await expectOnce({ session, end: COMPLETED, engine: 'COMPLETED', cancels: [] });
  await expectNext(session, input);
});

race('of three cancels the first took, also when one comes during the end', async (text) => {
  const { session, turn, workflow } = await sampling(text);
  const ending = holds.next(workflow, 'endTurn', 'before');
  await Promise.all([cancelTurn(at, turn, 'one'), cancelTurn(at, turn, 'two')]);
  await ending.reached;
  await cancelTurn(at, turn, 'three');
  ending.release();
  const [first] = await cancelsOf(at, turn);
  await expectOnce({
    session,
    end: byCancel(first?.id ?? ''),
    engine: 'CANCELLED',
    cancels: ['took', 'second', 'second'],
  });
  expect((await at.ended(session)).endBy).toBe(first?.by);
});

const recovery = () => at.house.temporal.schedule.getHandle(`${at.house.taskQueue}-recovery`);

/** Nobody sweeps until `sweepNow`. */
async function sweepNoMore(): Promise<void> {
  await recovery().pause();
  const ended = new Set<string>();
  await until('no sweep runs', async () => {
    const ids = (await recovery().describe()).info.runningActions.map(({ workflow }) => workflow.workflowId);
    const running = ids.filter((id) => !ended.has(id));
    await Promise.all(running.map(endOf));
    for (const id of running) ended.add(id);
    return running.length === 0;
  });
}

/** It may have come to its end by itself meanwhile. */
async function endOf(workflowId: string): Promise<void> {
  try {
    await at.house.temporal.workflow.getHandle(workflowId).terminate();
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
}

async function sweepNow(): Promise<void> {
  await recovery().unpause();
  await recovery().trigger(ScheduleOverlapPolicy.TERMINATE_OTHER);
}

it(`a terminate during the end of a cancel leaves the end that is written first, ${TIMES} times`, {
  timeout: 600_000,
}, async () => {
  const cleaning = async (text: string) => {
    const { session, turn, workflow } = await sampling(text);
    const ending = holds.next(workflow, 'endTurn', 'before');
    const { id } = await cancelTurn(at, turn, 'racer');
    await ending.reached;
    await turnHandle(at, turn).terminate('out of patience');
    return { session, ending, id };
  };
  for (let wave = 0; wave < TIMES; wave += AT_ONCE) {
    const many = Math.min(AT_ONCE, TIMES - wave);
    await sweepNoMore();
    const turns = await Promise.all(Array.from({ length: many }, (_, n) => cleaning(`terminate ${wave + n}`)));
    // Half of them go on while nobody looks; the others find the end that recovery wrote.
    const isFirst = (n: number) => n % 2 === 0;
    for (const [n, { ending }] of turns.entries()) if (isFirst(n)) ending.release();
    await Promise.all(turns.filter((_, n) => isFirst(n)).map(({ ending }) => ending.over));
    await sweepNow();
    await Promise.all(turns.map(({ session }) => at.ended(session)));
    for (const { ending } of turns) ending.release();
    await Promise.all(turns.map(({ ending }) => ending.over));
    await Promise.all(
      turns.map(({ session, id }, n) =>
        expectOnce(
          isFirst(n)
            ? { session, end: byCancel(id), engine: 'TERMINATED', cancels: ['took'] }
            : {
                session,
                end: ['INTERRUPTED/terminated', 'user', { name: 'engine', event: 'terminated' }],
                engine: 'TERMINATED',
                cancels: ['already_ended'],
                recordedBy: 'recovery',
              },
        ),
      ),
    );
  }
});

const HISTORY_EVENTS = 500;

it('a turn that continues as new hears a cancel before and after the switch', { timeout: 60_000 }, async () => {
  await Promise.all(
    Array.from({ length: 10 }, async (_, n) => {
      const text = `switch ${n}`;
      const first = hold();
      talk.on(text, (request) => {
        const step = countToolResults(request);
        return step < 6 ? paced(callTools([reading(step)]), step === 0 ? { hold: first } : {}) : say('Never.');
      });
      const { session } = await at.submit(text);
      const turn = `${session}/1`;
      await first.reached;
      const { runId } = await turnHandle(at, turn).describe();
      await lengthen(at, turn, HISTORY_EVENTS);
      const isAfter = n % 2 === 0;
      const held = holds.next(turnWorkflowId(turn), 'sample', isAfter ? 'before' : 'after');
      first.release();
      await held.reached;
      const { id } = await cancelTurn(at, turn, 'racer');
      expect((await turnHandle(at, turn).describe()).runId === runId).toBe(!isAfter);
      held.release();
      await expectOnce({ session, end: byCancel(id), engine: 'CANCELLED', cancels: ['took'] });
    }),
  );
});

/** Never the same twice in a row, which would be no progress. */
function reading(step: number) {
  return { name: 'list_files', arguments: { depth: 1 + (step % 2) } };
}
