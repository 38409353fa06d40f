import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CancelRequest, storeCancel } from '../../../activities/store/cancels.ts';
import { input, turn } from '../../../activities/store/schema.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { asked, CANCELLED, COMPLETED, end, join } from './ending.ts';
import { journal, next, send, type SeededTurn, seedTurn } from './seed.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
});
afterAll(() => at.close());

const inputOf = async (inputId: string) => (await at.db.select().from(input).where(eq(input.id, inputId)))[0]!;

async function forward(on: SeededTurn, ...inputs: readonly ('steer' | 'call_back' | 'agent_end')[]): Promise<string[]> {
  const sent: string[] = [];
  for (const kind of inputs) sent.push(await send(at.db, on.session, kind));
  expect(await next(at.db, on.session, on.turn)).toMatchObject({ kind: 'running', forward: sent });
  return sent;
}

test('the promoted one is consumed, whatever the end is and though it never became a message', async () => {
  const on = await seedTurn(at.db);
  await end(at.db, on, CANCELLED);
  expect(await inputOf(on.input)).toMatchObject({ status: 'consumed' });
});

test('a forwarded one that is a message on the chain is consumed, others wait for the next turn', async () => {
  const on = await seedTurn(at.db);
  const [taken, late, result] = await forward(on, 'steer', 'steer', 'call_back');
  await join(at.db, on, taken!);
  await end(at.db, on, COMPLETED);
  expect((await inputOf(taken!)).status).toBe('consumed');
  for (const left of [late!, result!])
    expect(await inputOf(left)).toMatchObject({ status: 'queued', turn: null, message: null });
  expect(await next(at.db, on.session)).toMatchObject({ kind: 'start', turn: { inputs: [late, result] } });
});

// Trap: a message of a run that was reset away is in the table, but not on the chain of the end's head.
test('one whose message is not on the chain of the end is put back', async () => {
  const on = await seedTurn(at.db);
  const [steer] = await forward(on, 'steer');
  await join(at.db, on, steer!);
  await at.db.update(turn).set({ head: on.head }).where(eq(turn.id, on.turn));
  await end(at.db, on, COMPLETED);
  expect(await inputOf(steer!)).toMatchObject({ status: 'queued', turn: null, message: null });
});

test('a person’s cancel drops the steering that was left, and says so; call-backs are kept', async () => {
  const on = await seedTurn(at.db);
  const [taken, dropped, result] = await forward(on, 'steer', 'steer', 'agent_end');
  await join(at.db, on, taken!);
  await storeCancel(at.db, asked(on, { by: 'a person', why: 'enough' }));
  await end(at.db, on, CANCELLED);
  expect((await inputOf(taken!)).status).toBe('consumed');
  expect(await inputOf(dropped!)).toMatchObject({
    status: 'dropped_by_cancel',
    droppedBy: 'a person',
    droppedWhy: 'enough',
    droppedAt: expect.any(Date),
  });
  expect((await inputOf(result!)).status).toBe('queued');
  const said = (await journal(at.db, on.session)).filter((event) => event.kind === 'input.dropped');
  expect(said).toEqual([
    {
      kind: 'input.dropped',
      layer: 'driver',
      input: dropped,
      status: 'dropped_by_cancel',
      by: 'a person',
      why: 'enough',
    },
  ]);
});

test.each<[string, Partial<CancelRequest>]>([
  ['a scheduler', { decidedBy: 'scheduler', detail: 'scheduler_cancel' }],
  ['a parent', { decidedBy: 'runtime', detail: 'parent_cancelled' }],
])('a cancel by %s drops nothing', async (_name, by) => {
  const on = await seedTurn(at.db);
  const [steer] = await forward(on, 'steer');
  await storeCancel(at.db, asked(on, by));
  await end(at.db, on, CANCELLED);
  expect((await inputOf(steer!)).status).toBe('queued');
});

// Whether the driver has handed a message over yet is no concern of whoever sent it.
test.each([
  ['a person’s cancel drops', CANCELLED, ['queued', 'queued', 'dropped_by_cancel', 'dropped_by_cancel']],
  ['any other end keeps', COMPLETED, ['queued', 'queued', 'queued', 'queued']],
] as const)(
  '%s what was said to the turn and not handed over; prompts and call-backs stay',
  async (_, how, expected) => {
    const on = await seedTurn(at.db);
    const waiting: string[] = [];
    for (const kind of ['prompt', 'call_back', 'steer', 'send_now'] as const)
      waiting.push(await send(at.db, on.session, kind));
    await end(at.db, on, how);
    expect(await Promise.all(waiting.map(async (id) => (await inputOf(id)).status))).toEqual(expected);
  },
);
