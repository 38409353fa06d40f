import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { editInput, lockInput, unlockInput, withdrawInput } from '../../../activities/store/input-changes.ts';
import { markDispatched } from '../../../activities/store/intake.ts';
import { input, tenant } from '../../../activities/store/schema.ts';
import type { InputStatus } from '../../../workflows/core/inputs.ts';
import { POLICY } from '../../../workflows/core/policy.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { atOnce, journal, next, seedJob, send } from './seed.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
  await at.db.insert(tenant).values({ id: 'other', name: 'other' });
});
afterAll(() => at.close());

const by = (who: string, id: string) => ({ tenant: 'default', input: id, by: who });
const rowOf = async (id: string) => (await at.db.select().from(input).where(eq(input.id, id)))[0]!;
const set = (id: string, change: Partial<typeof input.$inferInsert>) =>
  at.db.update(input).set(change).where(eq(input.id, id));

/** A session whose first prompt waits, and what its stream says of inputs from now on. */
async function waiting() {
  const { session, input: id } = await seedJob(at.db, { sender: 'ann' });
  const told = async () => (await journal(at.db, session)).slice(1);
  return { session, id, told };
}

test('edited until a turn has it: the turn gets the new text, and the stream says who', async () => {
  const { session, id, told } = await waiting();
  const edit = { ...by('bob', id), text: 'do that instead\0' };
  expect(await editInput(at.db, edit)).toEqual({ kind: 'changed', session });
  expect(await rowOf(id)).toMatchObject({ body: 'do that instead\uFFFD', sender: 'ann', status: 'queued' });
  expect(await told()).toEqual([{ kind: 'input.edited', layer: 'driver', input: id, by: 'bob' }]);
  expect(await next(at.db, session)).toMatchObject({ kind: 'start', turn: { inputs: [id] } });
  expect(await editInput(at.db, edit)).toEqual({ kind: 'taken', status: 'forwarded', turn: `${session}/1`, by: null });
});

test('withdrawn: who and why stay with it, no turn opens, and whoever comes again is told', async () => {
  const { session, id, told } = await waiting();
  expect(await withdrawInput(at.db, { ...by('bob', id), why: 'not needed' })).toEqual({ kind: 'changed', session });
  expect(await rowOf(id)).toMatchObject({ status: 'withdrawn', droppedBy: 'bob', droppedWhy: 'not needed' });
  expect(await told()).toEqual([
    { kind: 'input.dropped', layer: 'driver', input: id, status: 'withdrawn', by: 'bob', why: 'not needed' },
  ]);
  expect(await withdrawInput(at.db, { ...by('eve', id), why: null })).toEqual({ kind: 'before', by: 'bob' });
  expect(await editInput(at.db, { ...by('eve', id), text: 'x' })).toMatchObject({ kind: 'taken', status: 'withdrawn' });
  expect(await next(at.db, session)).toEqual({ kind: 'idle' });
  expect(await told()).toHaveLength(1);
});

describe('an edit lock', () => {
  test('keeps turns and everybody else away for 5 minutes, and its holder may renew it', async () => {
    const { session, id, told } = await waiting();
    const other = await send(at.db, session, 'prompt');
    const locked = await lockInput(at.db, by('bob', id));
    if (locked.kind !== 'changed') throw new Error(locked.kind);
    const leftMs = Date.parse(locked.until) - Date.now();
    expect(Math.abs(leftMs - POLICY.session.editLockMs)).toBeLessThan(10_000);
    const refused = { kind: 'locked', by: 'bob', until: locked.until };
    expect(await lockInput(at.db, by('eve', id))).toEqual(refused);
    expect(await editInput(at.db, { ...by('eve', id), text: 'x' })).toEqual(refused);
    expect(await withdrawInput(at.db, { ...by('eve', id), why: null })).toEqual(refused);
    expect(await unlockInput(at.db, by('eve', id))).toEqual(refused);
    expect(await lockInput(at.db, by('bob', id))).toMatchObject({ kind: 'changed' });
    expect(await next(at.db, session)).toMatchObject({ kind: 'start', turn: { inputs: [other] } });
    expect((await told()).map((event) => event.kind)).toEqual([
      'input.accepted',
      'input.locked',
      'input.locked',
      'turn.opened',
    ]);
  });

  test('let go of by its holder, by their edit, or by time: then it is next again', async () => {
    for (const letGo of [
      (id: string) => unlockInput(at.db, by('bob', id)),
      (id: string) => editInput(at.db, { ...by('bob', id), text: 'better' }),
      (id: string) => set(id, { editLockUntil: new Date(Date.now() - 1) }),
    ]) {
      const { session, id } = await waiting();
      await lockInput(at.db, by('bob', id));
      expect(await next(at.db, session)).toEqual({ kind: 'idle' });
      await letGo(id);
      expect(await next(at.db, session)).toMatchObject({ kind: 'start', turn: { inputs: [id] } });
    }
  });

  test('once it is over, anybody may take the next one; letting go of none says nothing', async () => {
    const { id, told } = await waiting();
    await lockInput(at.db, by('bob', id));
    await set(id, { editLockUntil: sql`clock_timestamp()` as unknown as Date });
    expect(await lockInput(at.db, by('eve', id))).toMatchObject({ kind: 'changed' });
    expect(await unlockInput(at.db, by('eve', id))).toMatchObject({ kind: 'changed' });
    expect(await unlockInput(at.db, by('eve', id))).toMatchObject({ kind: 'changed' });
    expect((await told()).map((event) => event.kind)).toEqual(['input.locked', 'input.locked', 'input.unlocked']);
  });

  // Trap: the notice about it has been taken by the engine long ago; without a new one it would wait for the turn's end.
  test('a steer that was locked counts as not told, so that a sweep tells a running turn of it afterwards', async () => {
    const { session } = await waiting();
    await next(at.db, session);
    const steer = await send(at.db, session, 'steer');
    await set(steer, { dispatchedAt: new Date() });
    await lockInput(at.db, by('bob', steer));
    expect(await rowOf(steer)).toMatchObject({ dispatchedAt: null, status: 'queued' });
    const prompt = await send(at.db, session, 'prompt');
    await set(prompt, { dispatchedAt: new Date() });
    await lockInput(at.db, by('bob', prompt));
    expect((await rowOf(prompt)).dispatchedAt).not.toBeNull();
  });

  // Trap: its sender's notice comes to the engine while somebody holds it; taken for told, no sweep would tell of it.
  test('and is not taken for told while it is held', async () => {
    const { session } = await waiting();
    await next(at.db, session);
    const [held, free] = [await send(at.db, session, 'steer'), await send(at.db, session, 'steer')];
    await lockInput(at.db, by('bob', held));
    await markDispatched(at.db, [held, free]);
    expect((await rowOf(held)).dispatchedAt).toBeNull();
    expect((await rowOf(free)).dispatchedAt).not.toBeNull();
    // A lock that has run out holds nothing.
    await set(held, { editLockUntil: new Date(0) });
    await markDispatched(at.db, [held]);
    expect((await rowOf(held)).dispatchedAt).not.toBeNull();
  });
});

describe('refused', () => {
  test.each<[InputStatus]>([['forwarded'], ['consumed'], ['dropped_by_cancel'], ['hook_blocked']])(
    'once it is %s',
    async (status) => {
      const { id, told } = await waiting();
      await set(id, { status, turn: 't/1', droppedBy: 'ann' });
      const taken = { kind: 'taken', status, turn: 't/1', by: 'ann' };
      expect(await editInput(at.db, { ...by('bob', id), text: 'x' })).toEqual(taken);
      expect(await withdrawInput(at.db, { ...by('bob', id), why: null })).toEqual(taken);
      expect(await lockInput(at.db, by('bob', id))).toEqual(taken);
      expect(await unlockInput(at.db, by('bob', id))).toEqual(taken);
      expect(await told()).toEqual([]);
    },
  );

  // Hooks have let its text pass, and nobody asks them again: another text would go by them.
  test('what a turn has had before may be taken back, but not changed', async () => {
    const { session } = await waiting();
    const steer = await send(at.db, session, 'steer');
    await set(steer, { isLeftOver: true });
    expect(await editInput(at.db, { ...by('bob', steer), text: 'x' })).toMatchObject({ status: 'left_over' });
    expect(await lockInput(at.db, by('bob', steer))).toMatchObject({ status: 'left_over' });
    expect(await withdrawInput(at.db, { ...by('bob', steer), why: null })).toMatchObject({ kind: 'changed' });
  });

  test.each(['call_back', 'agent_end', 'directive', 'wake'] as const)('a %s, which nobody wrote', async (kind) => {
    const { session } = await waiting();
    const machine = await send(at.db, session, kind);
    expect(await withdrawInput(at.db, { ...by('bob', machine), why: null })).toEqual({
      kind: 'not_written',
      source: kind,
    });
  });

  test('another tenant’s, and one that there is not', async () => {
    const { id } = await waiting();
    expect(await editInput(at.db, { tenant: 'other', input: id, by: 'eve', text: 'x' })).toEqual({ kind: 'unknown' });
    expect(await lockInput(at.db, by('bob', 'in_none'))).toEqual({ kind: 'unknown' });
    expect(await rowOf(id)).toMatchObject({ body: 'do it', editLockBy: null });
  });
});

test('whoever takes it back while a turn opens: one of the two has it', async () => {
  for (let round = 0; round < 5; round += 1) {
    const { session, id } = await waiting();
    const [taken, opened] = await atOnce<unknown>(
      at.db,
      sql`select from pawl.session where id = ${session} for no key update`,
      [() => withdrawInput(at.db, { ...by('bob', id), why: null }), () => next(at.db, session)],
    );
    const { status } = await rowOf(id);
    if (status === 'withdrawn') expect([taken, opened]).toEqual([{ kind: 'changed', session }, { kind: 'idle' }]);
    else expect([taken, opened]).toMatchObject([{ kind: 'taken', status: 'forwarded' }, { kind: 'start' }]);
  }
});
