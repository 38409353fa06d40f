import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { callTools, hold, paced, say, status } from '../../testing/index.ts';
import type { RunningWorker } from '../../worker/start-worker.ts';
import { look, turnWorkflowId } from '../../workflows/messages.ts';
import { conversations } from '../support/conversations.ts';
import {
  cancelByEngine,
  cancelsOf,
  cancelTurn,
  closedStatus,
  lengthen,
  only,
  sessionHandle,
  turnHandle,
  untilResting,
} from '../support/engine-facts.ts';
import { note, tally } from '../support/numbers.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

const talk = conversations();
const at: TestHouse = await testHouse({ rules: talk.rules, expectKey: true, worker: false });
let worker: RunningWorker;
beforeAll(async () => {
  worker = await at.startWorker();
});
afterAll(async () => {
  await at.close();
});

const POLICY_EVENTS = 500;
const reading = () => callTools([{ name: 'list_files', arguments: {} }]);

async function expectAborted(session: string, phases: readonly string[]) {
  const turn = `${session}/1`;
  const end = await at.ended(session);
  expect(end).toMatchObject({ endReason: 'ABORTED', endDetail: 'user_cancel', endDecidedBy: 'user' });
  expect(phases).toContain(end.endPhase);
  expect(await closedStatus(at, turnWorkflowId(turn))).toBe('CANCELLED');
  expect(only(await at.events(session), 'turn.ended', turn)).toHaveLength(1);
  return end;
}

/** The whole history of a turn's newest run, as names of events. */
async function eventsOfRun(turn: string) {
  const { events } = await turnHandle(at, turn).fetchHistory();
  return events ?? [];
}

describe('a cancel in the very activation', () => {
  // "A cancel seen before endTurn is scheduled wins over completion": here both arrive in one workflow task.
  it('that brings the final answer wins over it', async () => {
    const stop = hold();
    talk.on('answer and cancel', () => paced(say('Done.'), { hold: stop, holdAt: 1 }));
    const { session } = await at.submit('answer and cancel');
    await stop.reached;
    const gone = worker.stop();
    await sleep(50);
    stop.release();
    await until('the answer is in the history', async () =>
      (await eventsOfRun(`${session}/1`)).some((event) => event.activityTaskCompletedEventAttributes),
    );
    await gone;
    const { id } = await cancelTurn(at, `${session}/1`, 'just in time');
    worker = await at.startWorker();
    await expectAborted(session, ['sampling']);
    expect(await cancelsOf(at, `${session}/1`)).toMatchObject([{ id, answer: 'took' }]);
    // The whole answer came before the cancel: it stays, and is not called cut.
    expect((await at.transcript(session)).map(({ kind }) => kind)).toEqual(['user', 'assistant', 'interruption']);
  });

  // temporal.md: lost in 7 of 82 unless it is looked at right before continueAsNew.
  it('of a turn’s continue-as-new is not lost', async () => {
    let asked = 0;
    talk.on('turn goes over', () => {
      asked += 1;
      return status(429, { error: { message: 'wait' } }, { 'retry-after': '3' });
    });
    const { session } = await at.submit('turn goes over');
    const turn = `${session}/1`;
    await untilResting(at, `${session}/1`);
    await worker.stop();
    await lengthen(at, turn, POLICY_EVENTS);
    await until('the rest is over', async () =>
      (await eventsOfRun(turn)).some((event) => event.timerFiredEventAttributes),
    );
    await cancelTurn(at, turn, 'at the switch');
    worker = await at.startWorker();
    await expectAborted(session, ['resting', 'sampling']);
    expect(asked).toBe(1);
  });

  it('of a session’s continue-as-new is not lost', async () => {
    talk.on('session goes over', () => status(429, { error: { message: 'wait' } }, { 'retry-after': '100' }));
    const { session } = await at.submit('session goes over');
    await untilResting(at, `${session}/1`);
    await worker.stop();
    const handle = sessionHandle(at, session);
    await Promise.all(Array.from({ length: POLICY_EVENTS }, () => handle.signal(look)));
    await handle.cancel();
    worker = await at.startWorker();
    await expectAborted(session, ['resting']);
  });
});

describe('a turn that continues as new', () => {
  /** In its first step, its history almost full, held by the provider. */
  async function almostOver(prompt: string) {
    const first = hold();
    const later = hold();
    let requests = 0;
    talk.on(prompt, (request) => {
      requests += 1;
      if (requests === 1) return paced(reading(), { hold: first });
      return request.messages.length < 6 ? reading() : paced(say('Never.'), { hold: later, holdAt: 1 });
    });
    const { session } = await at.submit(prompt);
    const turn = `${session}/1`;
    await first.reached;
    const { runId } = await turnHandle(at, turn).describe();
    await lengthen(at, turn, POLICY_EVENTS - 12);
    return { session, turn, first, later, runId };
  }

  // Trap: the engine's own way from parent to child ends at the child's first run.
  it.each([
    ['by the engine', (turn: string) => cancelByEngine(at, turn)],
    ['through its session', (_: string, session: string) => sessionHandle(at, session).cancel()],
  ])('is cancelled as quickly in its second run, %s', async (how, cancel) => {
    const text = `second run ${how}`;
    const { session, turn, first, later, runId } = await almostOver(text);
    first.release();
    await later.reached;
    expect((await turnHandle(at, turn).describe()).runId).not.toBe(runId);
    const [request] = talk.requestsOf(at.provider, text).slice(-1);
    const asked = Date.now();
    await cancel(turn, session);
    await request?.settled;
    expect((request?.closedAt ?? Number.POSITIVE_INFINITY) - asked).toBeLessThan(1_500);
    const end = await expectAborted(session, ['sampling']);
    expect(end.endBy).toBe(at.house.temporal.options.identity);
  });

  it('is cancelled whenever the cancel comes around that moment', { timeout: 120_000 }, async () => {
    const moments = ['stream.ended', 'call.requested', 'call.finished', 'batch.ended', 'sample.started'] as const;
    const turns = await Promise.all([...moments, ...moments].map((_, n) => almostOver(`around ${n}`)));
    const where = await Promise.all(
      turns.map(async ({ session, turn, first, runId }, n) => {
        const moment = moments[n % moments.length] ?? 'stream.ended';
        first.release();
        await until(
          moment,
          async () => only(await at.events(session), moment).length > (moment === 'sample.started' ? 1 : 0),
        );
        await (n % 2 === 0 ? cancelTurn(at, turn, 'anybody') : cancelByEngine(at, turn));
        await expectAborted(session, ['sampling', 'tools']);
        const rows = await cancelsOf(at, turn);
        expect(rows.map(({ answer }) => answer)).toEqual(n % 2 === 0 ? ['took'] : []);
        return (await turnHandle(at, turn).describe()).runId === runId ? 'first run' : 'second run';
      }),
    );
    note('cancels around continue-as-new landed in', tally(where));
  });
});

/** Half of them at any moment around the answer, half once it is stored and the end is near. */
async function racing(session: string, n: number): Promise<void> {
  if (n % 2 === 0) return await sleep(n * 20 + Math.random() * 150);
  await until('the answer', async () => only(await at.events(session), 'stream.ended').length > 0);
  await sleep(Math.random() * 40);
}

it('has one end and a true answer when 50 cancels race the completion', { timeout: 120_000 }, async () => {
  const turns = await Promise.all(
    Array.from({ length: 50 }, async (_, n) => {
      const stop = hold();
      talk.on(`race ${n}`, () => paced(say('Done.'), { hold: stop, holdAt: 1 }));
      const { session } = await at.submit(`race ${n}`);
      await stop.reached;
      return { session, stop };
    }),
  );
  const answers = await Promise.all(
    turns.map(async ({ session, stop }, n) => {
      const turn = `${session}/1`;
      const [, cancelled] = await Promise.all([
        sleep(n * 20).then(() => stop.release()),
        racing(session, n).then(() => cancelTurn(at, turn, 'racer')),
      ]);
      const end = await at.ended(session);
      const engine = await closedStatus(at, turnWorkflowId(turn));
      const events = await at.events(session);
      expect(only(events, 'turn.ended')).toHaveLength(1);
      const [row] = await cancelsOf(at, turn);
      const answer = cancelled.stored === 'stored' ? row?.answer : cancelled.stored;
      expect({ answer, reason: end.endReason, engine }).toEqual(
        answer === 'took'
          ? { answer, reason: 'ABORTED', engine: 'CANCELLED' }
          : { answer: 'already_ended', reason: 'COMPLETED', engine: 'COMPLETED' },
      );
      expect(only(events, 'cancel.answered')).toHaveLength(cancelled.stored === 'stored' ? 1 : 0);
      return answer ?? 'none';
    }),
  );
  note('cancels racing completion', tally(answers));
});

// The row of a turn is there before its workflow is: a cancel of the session may find the one without the other.
it('ends or completes every turn whose session is cancelled while it opens', { timeout: 60_000 }, async () => {
  const sessions = await Promise.all(
    Array.from({ length: 10 }, async (_, n) => {
      talk.on(`opening ${n}`, () => say('Done.'));
      const { session } = await at.submit(`opening ${n}`);
      await sleep(n * 10 * Math.random());
      await sessionHandle(at, session).cancel();
      return session;
    }),
  );
  const ends = await Promise.all(
    sessions.map(async (session) => {
      const end = await at.ended(session, 1, 25_000);
      return `${end.endReason}/${end.endDetail}`;
    }),
  );
  note('sessions cancelled while their turn opens', tally(ends));
  for (const end of ends) expect(['ABORTED/user_cancel', 'COMPLETED/final_answer']).toContain(end);
});
