import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { enterRun, type Fence, lockTurn, readTurn } from '../../../activities/store/fence.ts';
import { finishCall, startEffect } from '../../../activities/store/ledger.ts';
import { closeSample } from '../../../activities/store/samples.ts';
import { effect, turn, turnRun, usage } from '../../../activities/store/schema.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import {
  closing,
  id,
  identity,
  journal,
  linkOn,
  nobodyConfirms,
  open,
  seedCalls,
  type SeededTurn,
  seedTurn,
  TOKENS,
  user,
} from './seed.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
});
afterAll(() => at.close());

const FENCED = { name: 'FenceRefused', code: 'turn.fenced' };
const ENDED = { name: 'FenceRefused', code: 'turn.already_ended' };
const run = (of: SeededTurn, isReset: boolean): Fence => ({ turn: of.turn, run: id('run'), isReset });
const end = (of: SeededTurn) => at.db.update(turn).set({ endedAt: new Date() }).where(eq(turn.id, of.turn));
const generation = async (of: SeededTurn) =>
  (await at.db.select().from(turn).where(eq(turn.id, of.turn)))[0]?.generation;

/** An engine that knows one newest run; it remembers what it was asked. */
function engine(newest: string) {
  const asked: string[] = [];
  return {
    asked,
    confirm: async (turnId: string, of: string) => {
      asked.push(`${turnId} ${of}`);
      return of === newest;
    },
  };
}

describe('who may come in', () => {
  test('the first run without a question, and once known it is not looked up again', async () => {
    const seeded = await seedTurn(at.db);
    const known = new Set<string>();
    await enterRun(at.db, seeded.fence, known, nobodyConfirms);
    await at.db.delete(turnRun).where(eq(turnRun.turn, seeded.turn));
    await enterRun(at.db, seeded.fence, known, nobodyConfirms);
    expect(await at.db.$count(turnRun, eq(turnRun.turn, seeded.turn))).toBe(0);
  });

  test('a run that continues as new, when the engine says it is the newest; the generation stays', async () => {
    const seeded = await seedTurn(at.db);
    const later = run(seeded, false);
    const asked = engine(later.run);
    await enterRun(at.db, later, new Set(), asked.confirm);
    expect(asked.asked).toEqual([`${seeded.turn} ${later.run}`]);
    expect(await generation(seeded)).toBe(0);
    // Both belong to the generation: the older one's last activity may still commit.
    await expect(readTurn(at.db, later)).resolves.toMatchObject({ id: seeded.turn });
    await expect(readTurn(at.db, seeded.fence)).resolves.toMatchObject({ id: seeded.turn });
  });

  test('not one that the engine does not know as the newest', async () => {
    const seeded = await seedTurn(at.db);
    const stranger = run(seeded, true);
    await expect(enterRun(at.db, stranger, new Set(), engine('another').confirm)).rejects.toMatchObject(FENCED);
    expect(await generation(seeded)).toBe(0);
    await expect(readTurn(at.db, stranger)).rejects.toMatchObject(FENCED);
  });

  test('a reset raises the generation once, however many of its activities come first', async () => {
    const seeded = await seedTurn(at.db);
    const reset = run(seeded, true);
    await Promise.all(Array.from({ length: 8 }, () => enterRun(at.db, reset, new Set(), engine(reset.run).confirm)));
    expect(await generation(seeded)).toBe(1);
    const resets = (await journal(at.db, seeded.session)).filter((event) => event.kind === 'turn.reset');
    expect(resets).toEqual([{ kind: 'turn.reset', layer: 'turn', generation: 1 }]);
  });

  test('nobody new into a turn that has ended', async () => {
    const seeded = await seedTurn(at.db);
    await end(seeded);
    const late = run(seeded, true);
    await expect(enterRun(at.db, late, new Set(), engine(late.run).confirm)).rejects.toMatchObject(ENDED);
  });
});

describe('after a reset the older run', () => {
  async function replaced(): Promise<{ old: SeededTurn; mine: SeededTurn; keys: string[] }> {
    const old = await seedTurn(at.db);
    const keys = await seedCalls(at.db, old, 'once');
    const reset = run(old, true);
    await enterRun(at.db, reset, new Set(), engine(reset.run).confirm);
    return { old, mine: { ...old, fence: reset }, keys };
  }

  test('moves nothing: no message, no attempt, no effect, no lock', async () => {
    const { old, keys } = await replaced();
    const [before] = await at.db.select().from(turn).where(eq(turn.id, old.turn));
    const attempt = { sample: id(), attempt: id('att') };
    await expect(open(at.db, old, attempt, [linkOn(old.head, user('x'))])).rejects.toMatchObject(FENCED);
    await expect(closeSample(at.db, closing(old))).rejects.toMatchObject(FENCED);
    await expect(
      startEffect(
        at.db,
        { fence: old.fence, key: keys[0]!, from: null, details: null, mayInPlan: false },
        identity('a'),
      ),
    ).rejects.toMatchObject(FENCED);
    await expect(at.db.transaction((tx) => lockTurn(tx, old.fence))).rejects.toMatchObject(FENCED);
    expect(await at.db.select().from(turn).where(eq(turn.id, old.turn))).toEqual([before]);
    expect(await at.db.$count(usage, eq(usage.sample, attempt.sample))).toBe(0);
  });

  test('still has its bill and its stream end written down', async () => {
    const { old, mine } = await replaced();
    const [mineAttempt, oldAttempt] = [id('att'), id('att')];
    await open(at.db, mine, { sample: id(), attempt: mineAttempt });
    await at.db.insert(usage).values({
      attempt: oldAttempt,
      sample: id(),
      session: old.session,
      turn: old.turn,
      step: 0,
      model: 'm',
      outputCapTokens: 1,
    });
    await expect(closeSample(at.db, closing(old, { attempt: oldAttempt }))).rejects.toMatchObject(FENCED);
    expect(await at.db.select().from(usage).where(eq(usage.attempt, oldAttempt))).toMatchObject([
      { ...TOKENS, costMicroUsd: 79, wasted: true, closedAt: expect.any(Date) },
    ]);
    // Its text was shown already: those who follow take it back.
    expect((await journal(at.db, old.session)).slice(-2)).toMatchObject([
      { kind: 'stream.ended', attempt: oldAttempt, reason: 'discarded' },
      { kind: 'attempt.discarded', attempt: oldAttempt },
    ]);
    await expect(closeSample(at.db, closing(mine, { attempt: mineAttempt }))).resolves.toMatchObject({ kind: 'reply' });
  });
});

describe('after the end', () => {
  test('nothing moves the turn; the answer says that it has ended', async () => {
    const seeded = await seedTurn(at.db);
    const [key] = await seedCalls(at.db, seeded, 'once');
    await end(seeded);
    await expect(open(at.db, seeded, { sample: id(), attempt: id() })).rejects.toMatchObject(ENDED);
    await expect(closeSample(at.db, closing(seeded))).rejects.toMatchObject(ENDED);
    await expect(
      startEffect(
        at.db,
        { fence: seeded.fence, key: key!, from: null, details: null, mayInPlan: false },
        identity('a'),
      ),
    ).rejects.toMatchObject(ENDED);
  });

  test('what the world did is still recorded', async () => {
    const seeded = await seedTurn(at.db);
    const [key] = await seedCalls(at.db, seeded, 'once');
    const [moved] = await at.db.select().from(turn).where(eq(turn.id, seeded.turn));
    await startEffect(
      at.db,
      { fence: seeded.fence, key: key!, from: null, details: null, mayInPlan: false },
      identity('a'),
    );
    const attempt = id('att');
    await open(at.db, { ...seeded, head: moved!.head }, { sample: id(), attempt });
    await end(seeded);
    await expect(closeSample(at.db, closing(seeded, { attempt }))).rejects.toMatchObject(ENDED);
    expect(await at.db.select().from(usage).where(eq(usage.attempt, attempt))).toMatchObject([
      { ...TOKENS, costMicroUsd: 79, wasted: true },
    ]);
    const { turn: turnId, session } = seeded;
    const { status } = await finishCall(at.db, {
      turn: turnId,
      session,
      tenant: 'default',
      key: key!,
      tool: 'shell',
      status: 'ok',
      text: 'did it',
      output: null,
      note: null,
      effect: { state: 'succeeded', attempt: 'a', isCut: false },
      events: [],
    });
    expect(status).toBe('ok');
    expect(await at.db.select().from(effect).where(eq(effect.key, key!))).toMatchObject([{ state: 'succeeded' }]);
    expect((await journal(at.db, session)).slice(-3).map((event) => event.kind)).toEqual([
      'stream.ended',
      'attempt.discarded',
      'call.finished',
    ]);
  });
});
