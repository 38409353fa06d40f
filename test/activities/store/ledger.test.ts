import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type CallClosing,
  finishCall,
  leaseRemainingMs,
  noteGroup,
  readCall,
  renewLease,
  startEffect,
  unsettledEffects,
} from '../../../activities/store/ledger.ts';
import { blob, effect, type EffectState } from '../../../activities/store/schema.ts';
import type { CallStatus } from '../../../workflows/core/tools.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { atOnce, id, identity, journal, seedCalls, type SeededTurn, seedTurn } from './seed.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
});
afterAll(() => at.close());

async function once(): Promise<{ turn: SeededTurn; key: string }> {
  const turn = await seedTurn(at.db);
  const [key] = await seedCalls(at.db, turn, 'once');
  return { turn, key: key! };
}

async function start(
  on: { turn: SeededTurn; key: string },
  attempt: string,
  from: string | null = null,
  leaseMs = 60_000,
): Promise<boolean> {
  const wanted = { fence: on.turn.fence, key: on.key, from, details: { before: attempt }, mayInPlan: false };
  return (await startEffect(at.db, wanted, identity(attempt, leaseMs))) === 'started';
}

function closingOf(
  on: { turn: SeededTurn; key: string },
  status: CallStatus,
  effect_: EffectState | null,
  change: Partial<CallClosing> = {},
): CallClosing {
  return {
    turn: on.turn.turn,
    session: on.turn.session,
    tenant: 'default',
    key: on.key,
    tool: 'shell',
    status,
    text: status,
    output: null,
    note: null,
    effect: effect_ && { state: effect_, attempt: 'a', isCut: false },
    events: [],
    ...change,
  };
}

const stateOf = async (key: string) => (await readCall(at.db, key))?.effect?.state;
const callOf = async (key: string) => (await readCall(at.db, key))?.call;
const batchEvents = async (on: { turn: SeededTurn }) =>
  (await journal(at.db, on.turn.session)).flatMap((event) =>
    event.kind === 'call.started' || event.kind === 'call.finished'
      ? [event.kind]
      : event.kind === 'effect.settled'
        ? [`${event.kind} ${event.as}`]
        : [],
  );

describe('starting an effect', () => {
  test('of twenty attempts at once one wins, and tells of itself', async () => {
    const on = await once();
    const won = await Promise.all(Array.from({ length: 20 }, (_, n) => start(on, `att${n}`)));
    expect(won.filter(Boolean)).toHaveLength(1);
    const holder = `att${won.indexOf(true)}`;
    expect((await readCall(at.db, on.key))?.effect).toMatchObject({
      state: 'started',
      attempt: holder,
      details: { before: holder },
      host: 'h',
      pid: 1,
    });
    expect(await batchEvents(on)).toEqual(['call.started']);
  });

  test('only from the attempt that is proved dead, by exactly one of those that come after', async () => {
    const on = await once();
    await start(on, 'a');
    expect(await start(on, 'b', 'not a')).toBe(false);
    const taken = await Promise.all(['b', 'c', 'd'].map((attempt) => start(on, attempt, 'a')));
    expect(taken.filter(Boolean)).toHaveLength(1);
  });

  test.each<EffectState>(['succeeded', 'failed', 'settled_done', 'settled_absent', 'abandoned'])(
    'never once it is %s',
    async (state) => {
      const on = await once();
      await start(on, 'a');
      await at.db.update(effect).set({ state }).where(eq(effect.key, on.key));
      expect(await start(on, 'b')).toBe(false);
      expect(await start(on, 'b', 'a')).toBe(false);
    },
  );

  test('an unknown one may be taken from the attempt that left it so', async () => {
    const on = await once();
    await start(on, 'a');
    await at.db.update(effect).set({ state: 'unknown' }).where(eq(effect.key, on.key));
    expect(await start(on, 'b', 'a')).toBe(true);
  });
});

describe('a lease', () => {
  test('is prolonged by its holder only', async () => {
    const on = await once();
    await start(on, 'a', null, 1_000);
    expect(await renewLease(at.db, on.key, 'b', 500_000)).toBe(false);
    expect(await leaseRemainingMs(at.db, on.key)).toBeLessThanOrEqual(1_000);
    expect(await renewLease(at.db, on.key, 'a', 500_000)).toBe(true);
    expect(await leaseRemainingMs(at.db, on.key)).toBeGreaterThan(400_000);
  });

  test('is lost with a takeover, and ends with the result', async () => {
    const on = await once();
    await start(on, 'a');
    await start(on, 'b', 'a');
    expect(await renewLease(at.db, on.key, 'a', 1)).toBe(false);
    await finishCall(
      at.db,
      closingOf(on, 'ok', 'succeeded', { effect: { state: 'succeeded', attempt: 'b', isCut: false } }),
    );
    expect(await renewLease(at.db, on.key, 'b', 1)).toBe(false);
  });

  test('that is over has nothing left', async () => {
    const on = await once();
    await start(on, 'a');
    await at.db
      .update(effect)
      .set({ leaseUntil: sql`clock_timestamp() - interval '1 s'` })
      .where(eq(effect.key, on.key));
    expect(await leaseRemainingMs(at.db, on.key)).toBe(0);
    expect(await leaseRemainingMs(at.db, 'no such key')).toBe(0);
  });

  test('the process group is noted by the holder only, and forgotten with a takeover', async () => {
    const on = await once();
    await start(on, 'a');
    await noteGroup(at.db, on.key, 'b', { pid: 2, started: 'x' });
    await noteGroup(at.db, on.key, 'a', { pid: 3, started: 'y' });
    expect((await readCall(at.db, on.key))?.effect?.group).toEqual({ pid: 3, started: 'y' });
    await start(on, 'b', 'a');
    expect((await readCall(at.db, on.key))?.effect?.group).toBeNull();
  });
});

describe('a result', () => {
  test('is kept with its output, its effect and one event', async () => {
    const on = await once();
    await start(on, 'a');
    const output = { hash: id('blob'), data: Buffer.from([0, 255, 1]) };
    expect(
      (await finishCall(at.db, closingOf(on, 'ok', 'succeeded', { text: 'a\0\uD800', note: 'exit 0\0', output })))
        .status,
    ).toBe('ok');
    expect(await callOf(on.key)).toMatchObject({
      status: 'ok',
      result: 'a\uFFFD\uFFFD',
      note: 'exit 0\uFFFD',
      blob: output.hash,
    });
    expect((await at.db.select().from(blob).where(eq(blob.hash, output.hash)))[0]?.data).toEqual(output.data);
    expect(await stateOf(on.key)).toBe('succeeded');
    expect(await batchEvents(on)).toEqual(['call.started', 'call.finished']);
  });

  test('of two the first stands, in the call and in the ledger', async () => {
    const on = await once();
    await start(on, 'a');
    await finishCall(at.db, closingOf(on, 'ok', 'succeeded'));
    // Trap: recovery read the row before the attempt came back, and writes what it took for the truth.
    expect((await finishCall(at.db, closingOf(on, 'unknown', 'unknown'))).status).toBe('ok');
    expect(await callOf(on.key)).toMatchObject({ status: 'ok', result: 'ok' });
    expect(await stateOf(on.key)).toBe('succeeded');
    expect(await batchEvents(on)).toEqual(['call.started', 'call.finished']);
  });

  // Trap: one statement sees one snapshot, in which nobody has finished yet.
  test('of eight at once one stands, and all are told the same', async () => {
    const on = await once();
    await start(on, 'a');
    const statuses: CallStatus[] = ['ok', 'error', 'stopped', 'unknown'];
    const told = await atOnce(
      at.db,
      sql`select from pawl.call where key = ${on.key} for update`,
      Array.from(
        { length: 8 },
        (_, n) => async () => (await finishCall(at.db, closingOf(on, statuses[n % 4]!, null))).status,
      ),
    );
    expect([...new Set(told)]).toEqual([(await callOf(on.key))?.status]);
    expect(await batchEvents(on)).toEqual(['call.started', 'call.finished']);
  });

  test('a reader’s has no row in the ledger', async () => {
    const turn = await seedTurn(at.db);
    const [key] = await seedCalls(at.db, turn, 'none');
    expect((await finishCall(at.db, closingOf({ turn, key: key! }, 'ok', null))).status).toBe('ok');
    expect((await readCall(at.db, key!))?.effect).toBeNull();
  });

  test.each<EffectState>(['unknown', 'settled_absent'])(
    'a success after %s is recorded as late, once; what the model was told stays',
    async (given) => {
      const on = await once();
      await start(on, 'a');
      await finishCall(at.db, closingOf(on, 'unknown', given));
      for (let time = 0; time < 2; time += 1)
        expect((await finishCall(at.db, closingOf(on, 'ok', 'succeeded'))).status).toBe('unknown');
      expect(await callOf(on.key)).toMatchObject({ status: 'unknown', result: 'unknown' });
      expect(await stateOf(on.key)).toBe('succeeded');
      expect(await batchEvents(on)).toEqual(['call.started', 'call.finished', 'effect.settled late_success']);
    },
  );

  test('a success that is written again is not late', async () => {
    const on = await once();
    await start(on, 'a');
    for (let time = 0; time < 2; time += 1) await finishCall(at.db, closingOf(on, 'ok', 'succeeded'));
    expect(await batchEvents(on)).toEqual(['call.started', 'call.finished']);
  });
});

test('unsettled is what is intended, started or unknown', async () => {
  const turn = await seedTurn(at.db);
  const states: EffectState[] = [
    'intended',
    'started',
    'unknown',
    'succeeded',
    'failed',
    'settled_done',
    'settled_absent',
    'abandoned',
  ];
  const keys = await seedCalls(at.db, turn, ...states.map(() => 'once' as const));
  for (const [n, state] of states.entries()) await at.db.update(effect).set({ state }).where(eq(effect.key, keys[n]!));
  expect((await unsettledEffects(at.db, turn.turn)).map((row) => row.state).toSorted()).toEqual([
    'intended',
    'started',
    'unknown',
  ]);
});
