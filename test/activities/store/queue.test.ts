import { eq, inArray, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { advance } from '../../../activities/store/queue.ts';
import { input, outbox, toolList, turn } from '../../../activities/store/schema.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { AGENT, journal, kinds, next, seedJob, send } from './seed.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
});
afterAll(() => at.close());

const endTurn = (id: string, change = {}) =>
  at.db
    .update(turn)
    .set({ endedAt: new Date(), ...change })
    .where(eq(turn.id, id));
const status = async (id: string) => (await at.db.select().from(input).where(eq(input.id, id)))[0];

/** Opens and ends turn after turn; the inputs in the order in which they were promoted. */
async function promoted(session: string): Promise<string[]> {
  const order: string[] = [];
  for (;;) {
    const step = await next(at.db, session);
    if (step.kind !== 'start') return order;
    order.push(...step.turn.inputs);
    await at.db
      .update(input)
      .set({ status: 'consumed' })
      .where(inArray(input.id, [...step.turn.inputs]));
    await endTurn(step.turn.turn);
  }
}

describe('idle: the next turn', () => {
  test('people first, then wake-ups, first in first out in each', async () => {
    const job = await seedJob(at.db);
    const wake = await send(at.db, job.session, 'wake');
    const directive = await send(at.db, job.session, 'directive');
    const [one, two] = [await send(at.db, job.session, 'prompt'), await send(at.db, job.session, 'prompt')];
    expect(await promoted(job.session)).toEqual([job.input, one, two, wake, directive]);
  });

  test('what was left over from steering goes before every prompt, in its order', async () => {
    const job = await seedJob(at.db);
    const prompt = await send(at.db, job.session, 'prompt');
    const steers = [await send(at.db, job.session, 'steer'), await send(at.db, job.session, 'steer')];
    await at.db.update(input).set({ isLeftOver: true }).where(inArray(input.id, steers));
    expect(await promoted(job.session)).toEqual([...steers, job.input, prompt]);
  });

  test('steering that no turn has had yet does not overtake the prompt it is about', async () => {
    const job = await seedJob(at.db);
    const steer = await send(at.db, job.session, 'steer');
    expect((await promoted(job.session))[0]).toBe(job.input);
    expect(await promoted(job.session)).not.toContain(job.input);
    expect(steer).toBeTruthy();
  });

  test('one that somebody edits is passed over, until the lock is over', async () => {
    const job = await seedJob(at.db);
    const other = await send(at.db, job.session, 'prompt');
    const lock = (until: string) =>
      at.db
        .update(input)
        .set({ editLockUntil: sql.raw(`clock_timestamp() + interval '${until}'`) })
        .where(eq(input.id, job.input));
    await lock('5 min');
    expect(await promoted(job.session)).toEqual([other]);
    await lock('-1 s');
    expect(await promoted(job.session)).toEqual([job.input]);
  });

  test('is opened once, bound to its input, with pinned agent and tools, and an event', async () => {
    const job = await seedJob(at.db);
    const tool = { name: 't', description: 'd', parameters: {}, effect: 'none', runs: 'activity' } as const;
    const asked: (readonly string[])[] = [];
    const { next: step, stream } = await advance(at.db, job.session, null, (names) => {
      asked.push(names);
      return [tool];
    });
    expect(stream).toBe(job.session);
    expect(asked).toEqual([AGENT.tools]);
    expect(step).toMatchObject({
      kind: 'start',
      turn: {
        turn: `${job.session}/1`,
        inputs: [job.input],
        agentName: 'tester',
        workspaceQueue: 'q',
        limits: AGENT.limits,
      },
    });
    // Looking again changes nothing: the answer is the same until the turn is started and ended.
    expect(await next(at.db, job.session)).toEqual(step);
    expect(await next(at.db, job.session, `${job.session}/0`)).toEqual(step);
    expect(await status(job.input)).toMatchObject({
      status: 'forwarded',
      turn: `${job.session}/1`,
      dispatchedAt: expect.any(Date),
    });
    expect((await journal(at.db, job.session)).slice(1)).toEqual([
      { kind: 'turn.opened', layer: 'turn', n: 1, input: job.input },
    ]);
    const [opened] = await at.db.select().from(turn).where(eq(turn.session, job.session));
    expect(
      await at.db.select({ tools: toolList.tools }).from(toolList).where(eq(toolList.hash, opened!.tools)),
    ).toEqual([{ tools: [tool] }]);
  });

  test('ten looks at once open one turn', async () => {
    const job = await seedJob(at.db);
    await send(at.db, job.session, 'prompt');
    const steps = await Promise.all(Array.from({ length: 10 }, () => next(at.db, job.session)));
    expect(new Set(steps.map((step) => (step.kind === 'start' ? step.turn.turn : step.kind)))).toEqual(
      new Set([`${job.session}/1`]),
    );
    expect(await at.db.$count(turn, eq(turn.session, job.session))).toBe(1);
  });

  test('a number is never used again', async () => {
    const job = await seedJob(at.db);
    await send(at.db, job.session, 'prompt');
    await promoted(job.session);
    await send(at.db, job.session, 'prompt');
    await promoted(job.session);
    const rows = await at.db
      .select({ n: turn.n, id: turn.id })
      .from(turn)
      .where(eq(turn.session, job.session))
      .orderBy(turn.n);
    expect(rows).toEqual([1, 2, 3].map((n) => ({ n, id: `${job.session}/${n}` })));
  });
});

describe('while a turn runs', () => {
  async function running() {
    const job = await seedJob(at.db);
    const step = await next(at.db, job.session);
    if (step.kind !== 'start') throw new Error(step.kind);
    return { session: job.session, turn: step.turn.turn, input: job.input };
  }

  test('what joins is handed over in its order until it is in the transcript; prompts and wake-ups wait', async () => {
    const { session, turn: open } = await running();
    const joins = [await send(at.db, session, 'steer'), await send(at.db, session, 'call_back')];
    const waits = [
      await send(at.db, session, 'prompt'),
      await send(at.db, session, 'directive'),
      await send(at.db, session, 'wake'),
    ];
    joins.push(await send(at.db, session, 'agent_end'), await send(at.db, session, 'steer'));
    expect(await next(at.db, session, open)).toEqual({ kind: 'running', turn: open, forward: joins });
    // A look that is repeated may have lost its first answer; the turn itself takes each id once.
    expect(await next(at.db, session, open)).toEqual({ kind: 'running', turn: open, forward: joins });
    await at.db
      .update(input)
      .set({ message: 'm' })
      .where(inArray(input.id, joins.slice(0, 2)));
    const now = await send(at.db, session, 'send_now');
    expect(await next(at.db, session, open)).toMatchObject({ forward: [...joins.slice(2), now], urgent: [now] });
    for (const id of joins)
      expect(await status(id)).toMatchObject({ status: 'forwarded', turn: open, dispatchedAt: expect.any(Date) });
    for (const id of waits)
      expect(await status(id)).toMatchObject({ status: 'queued', turn: null, dispatchedAt: null });
  });

  test('an edited one is not handed over', async () => {
    const { session, turn: open } = await running();
    const steer = await send(at.db, session, 'steer');
    await at.db
      .update(input)
      .set({ editLockUntil: sql`clock_timestamp() + interval '5 min'` })
      .where(eq(input.id, steer));
    expect(await next(at.db, session, open)).toMatchObject({ forward: [] });
  });

  test('a run of the session that has not started it is told to start or adopt it, with what joins it', async () => {
    const { session, turn: open, input: own } = await running();
    const steer = await send(at.db, session, 'steer');
    const prompt = await send(at.db, session, 'prompt');
    // Twice: the answer of the first look may have been lost with its worker.
    for (let look = 0; look < 2; look += 1)
      expect(await next(at.db, session, null)).toMatchObject({
        kind: 'start',
        turn: { turn: open, inputs: [own, steer] },
      });
    expect(await status(prompt)).toMatchObject({ status: 'queued' });
  });
});

describe('coming to rest', () => {
  test('is told once for each last turn', async () => {
    const job = await seedJob(at.db);
    await promoted(job.session);
    for (let look = 0; look < 3; look += 1) expect(await next(at.db, job.session)).toEqual({ kind: 'idle' });
    expect(await kinds(at.db, job.session)).toEqual(['job.submitted', 'turn.opened', 'driver.ended']);
    await send(at.db, job.session, 'prompt');
    await promoted(job.session);
    expect((await kinds(at.db, job.session)).filter((kind) => kind === 'driver.ended')).toHaveLength(2);
  });

  test('a session without a turn, or that nobody knows, is idle and says nothing', async () => {
    const job = await seedJob(at.db);
    await at.db.update(input).set({ status: 'withdrawn' }).where(eq(input.id, job.input));
    expect(await next(at.db, job.session)).toEqual({ kind: 'idle' });
    expect(await next(at.db, 'ses_nobody')).toEqual({ kind: 'idle' });
    expect(await kinds(at.db, job.session)).toEqual(['job.submitted']);
  });

  // Stopping never lets a waiting background result wake the agent again by itself.
  test.each([
    { endReason: 'ABORTED', endDetail: 'user_cancel' },
    { endReason: 'INTERRUPTED', endDetail: 'terminated' },
  ] as const)(
    'after a person stopped the turn ($endDetail) no background result starts another; with the next prompt it joins',
    async (end) => {
      const job = await seedJob(at.db);
      const step = await next(at.db, job.session);
      if (step.kind !== 'start') throw new Error(step.kind);
      await at.db.update(input).set({ status: 'consumed' }).where(eq(input.id, job.input));
      await endTurn(step.turn.turn, { ...end, endDecidedBy: 'user' });
      const results = [await send(at.db, job.session, 'call_back'), await send(at.db, job.session, 'agent_end')];
      expect(await next(at.db, job.session)).toEqual({ kind: 'idle' });
      const prompt = await send(at.db, job.session, 'prompt');
      const second = `${job.session}/2`;
      expect(await next(at.db, job.session)).toMatchObject({
        kind: 'start',
        turn: { turn: second, inputs: [prompt, ...results] },
      });
    },
  );

  test.each([
    { endReason: 'ABORTED', endDecidedBy: 'runtime' },
    { endReason: 'INTERRUPTED', endDecidedBy: 'runtime' },
    { endReason: 'COMPLETED', endDecidedBy: 'model' },
  ] as const)('after $endReason by $endDecidedBy a background result starts one', async (end) => {
    const job = await seedJob(at.db);
    const step = await next(at.db, job.session);
    if (step.kind !== 'start') throw new Error(step.kind);
    await endTurn(step.turn.turn, end);
    const result = await send(at.db, job.session, 'call_back');
    expect(await next(at.db, job.session)).toMatchObject({ kind: 'start', turn: { inputs: [result] } });
  });
});

test('a look takes notice of what the outbox holds for this session, and of nothing else', async () => {
  const job = await seedJob(at.db);
  const rows = [`session:${job.session}`, 'session:another', 'goal:g'].map((receiver) => ({
    receiver,
    event: `ended/${job.session}`,
    body: {},
  }));
  await at.db.insert(outbox).values(rows);
  await next(at.db, job.session);
  const open = await at.db
    .select({ receiver: outbox.receiver })
    .from(outbox)
    .where(sql`${outbox.acknowledgedAt} is null and ${outbox.event} = ${`ended/${job.session}`}`);
  expect(open.map((row) => row.receiver).toSorted()).toEqual(['goal:g', 'session:another']);
});

test('the outbox takes one row for a receiver and an event', async () => {
  const row = { receiver: 'session:s', event: 'ended/t', body: {} };
  await at.db.insert(outbox).values(row);
  await expect(at.db.insert(outbox).values(row)).rejects.toMatchObject({ cause: { constraint: 'outbox_once' } });
  await at.db.insert(outbox).values([
    { ...row, receiver: 'goal:g' },
    { ...row, event: 'ended/u' },
  ]);
});
