import { eq, inArray, isNull, sql } from 'drizzle-orm';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Deps } from '../../../activities/deps.ts';
import type { Engine } from '../../../activities/engine/port.ts';
import { sweep } from '../../../activities/recovery/sweep.ts';
import { lockInput } from '../../../activities/store/input-changes.ts';
import { goal, input, turn } from '../../../activities/store/schema.ts';
import { createRegistry } from '../../../activities/tools/registry.ts';
import { POLICY } from '../../../workflows/core/policy.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { seedGoal } from '../store/seed-goals.ts';
import { next, seedJob, seedTurn, send } from '../store/seed.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
});
afterAll(() => at.close());

const MANY = POLICY.recovery.turnsAtOnce * 2 + 100;

/** Open turns like the one that is there, each of a session of its own. */
async function copyTurn(from: { readonly session: string; readonly turn: string }, times: number): Promise<void> {
  const clone = (table: string, where: string, keys: string) =>
    sql.raw(`insert into pawl.${table} select (jsonb_populate_record(null::pawl.${table}, to_jsonb(row) || ${keys})).*
      from pawl.${table} row, generate_series(1, ${times}) nth where row.${where}`);
  const session = `'session', 'copy_' || nth`;
  await at.db.execute(
    clone('session', `id = '${from.session}'`, `jsonb_build_object('id', 'copy_' || nth, 'stream', 'copy_' || nth)`),
  );
  await at.db.execute(
    clone(
      'input',
      `session = '${from.session}'`,
      `jsonb_build_object('id', 'in_' || nth, ${session}, 'turn', 'copy_' || nth || '/1')`,
    ),
  );
  await at.db.execute(
    clone(
      'turn',
      `id = '${from.turn}'`,
      `jsonb_build_object('id', 'copy_' || nth || '/1', ${session}, 'input', 'in_' || nth)`,
    ),
  );
}

const never = () => Promise.reject(new Error('nobody asked for this'));

/** What a sweep needs, around an engine of which the test says what it does. */
function depsWith(part: Partial<Engine>): Deps {
  const engine: Engine = {
    isCurrentRun: never,
    cancelAuthor: never,
    requestCancel: never,
    answerWaits: never,
    look: never,
    lookGoal: never,
    endSchedule: never,
    fateOf: () => Promise.resolve({ kind: 'running' }),
    ...part,
  };
  const log = pino({ level: 'silent' });
  return { database: at, engine, tools: createRegistry([]), reporter: { wake() {} }, log } as unknown as Deps;
}

// Nobody may be stuck behind somebody who went away in the middle of an edit.
test('a lock that is over wakes the queue, idle or with a turn that the input would join; a live one does not', async () => {
  const by = (input: string) => ({ tenant: 'default', input, by: 'bob' });
  const idle = await seedJob(at.db);
  const busy = await seedTurn(at.db);
  const steer = await send(at.db, busy.session, 'steer');
  const prompt = await send(at.db, busy.session, 'prompt');
  const inputs = [idle.input, steer, prompt];
  const mine = inArray(input.id, inputs);
  await at.db
    .update(input)
    .set({ createdAt: new Date(Date.now() - 60_000), dispatchedAt: new Date() })
    .where(mine);
  for (const each of inputs) await lockInput(at.db, by(each));
  const told: string[] = [];
  const deps = depsWith({ look: (session) => Promise.resolve(void told.push(session)) });
  await sweep(deps, null);
  expect(told).toEqual([]);
  await at.db
    .update(input)
    .set({ editLockUntil: new Date(Date.now() - 1_000) })
    .where(mine);
  await sweep(deps, null);
  expect(told.toSorted()).toEqual([idle.session, busy.session].toSorted());
  // The turn has it now; the prompt waits for idle as any other does, and nobody is told of it again and again.
  expect(await next(at.db, busy.session, busy.turn)).toMatchObject({ kind: 'running', forward: [steer] });
  expect(await next(at.db, idle.session)).toMatchObject({ kind: 'start' });
  told.length = 0;
  await sweep(deps, null);
  expect(told).toEqual([]);
});

// Trap: what a driver had in hand when it was terminated is queued and told of, or bound to the turn: no look moved it.
test.each(['queued', 'forwarded'] as const)(
  'a message that is %s, and whose driver is gone, is told of again',
  async (status) => {
    const busy = await seedTurn(at.db);
    const steer = await send(at.db, busy.session, 'steer');
    if (status === 'forwarded') await next(at.db, busy.session, busy.turn);
    const told: string[] = [];
    const sweepWhile = async (driver: 'running' | 'completed', sentMs: number) => {
      const dispatchedAt = new Date(Date.now() - sentMs);
      await at.db.update(input).set({ createdAt: dispatchedAt, dispatchedAt }).where(eq(input.id, steer));
      const fateOf = (id: string) =>
        Promise.resolve({ kind: id === `session/${busy.session}` ? driver : ('running' as const) });
      await sweep(depsWith({ fateOf, look: (session) => Promise.resolve(void told.push(session)) }), null);
    };
    await sweepWhile('completed', 0);
    // It waits for the next safe point, and its driver knows of it.
    await sweepWhile('running', 60_000);
    expect(told).toEqual([]);
    await sweepWhile('completed', 60_000);
    expect(told).toEqual([busy.session]);
    expect(await next(at.db, busy.session)).toMatchObject({ kind: 'start', turn: { inputs: [busy.input, steer] } });
  },
);

test('a goal that should have gone on, and whose workflow is gone, is told', async () => {
  const own = await seedGoal(at.db);
  await at.db
    .update(goal)
    .set({ changedAt: new Date(0), createdAt: new Date(), state: sql`jsonb_set(state, '{facts}', '[]')` })
    .where(eq(goal.id, own.goal));
  const told: string[] = [];
  const sweepWhile = async (driver: 'running' | 'timed_out') => {
    const fateOf = (id: string) => Promise.resolve({ kind: id === `goal/${own.goal}` ? driver : ('running' as const) });
    await sweep(depsWith({ fateOf, lookGoal: (id) => Promise.resolve(void told.push(id)) }), null);
  };
  await sweepWhile('running');
  expect(told).toEqual([]);
  await sweepWhile('timed_out');
  expect(told).toEqual([own.goal]);
  await at.db.update(goal).set({ isFinal: true }).where(eq(goal.id, own.goal));
});

// Trap: a look that takes the first few hundred that come up never sees those behind them.
test('every open turn is looked at once in a round, however many there are', async () => {
  const first = await seedTurn(at.db);
  await copyTurn(first, MANY - 1);
  const asked: string[] = [];
  const deps = depsWith({
    fateOf: (id) => {
      if (id.startsWith('turn/')) asked.push(id);
      return Promise.resolve({ kind: 'running' });
    },
  });
  const places: (string | null)[] = [];
  let after: string | null = null;
  do {
    ({ after } = await sweep(deps, after));
    places.push(after);
  } while (after !== null);
  expect(places).toEqual([expect.any(String), expect.any(String), null]);
  const open = await at.db.$count(turn, isNull(turn.endedAt));
  expect(open).toBeGreaterThanOrEqual(MANY);
  expect(asked).toHaveLength(open);
  expect(new Set(asked).size).toBe(open);
});
