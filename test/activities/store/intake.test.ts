import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { storeCancel } from '../../../activities/store/cancels.ts';
import { storeInput, storeJob } from '../../../activities/store/intake.ts';
import { cancel, input, job, session, tenant, turn } from '../../../activities/store/schema.ts';
import { POLICY } from '../../../workflows/core/policy.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { id, journal, kinds, newJob, next, seedJob, seedTurn } from './seed.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
  await at.db.insert(tenant).values({ id: 'other', name: 'other' });
});
afterAll(() => at.close());

describe('a job', () => {
  test('the same key again is the same job', async () => {
    const request = newJob({ ticket: 'T-1', sender: 'tok' });
    const first = await storeJob(at.db, request);
    expect(first).toMatchObject({ kind: 'accepted', isNew: true });
    expect(await storeJob(at.db, request)).toEqual({ ...first, isNew: false });
  });

  test('twenty at once with one key make one job, one session, one input, one event', async () => {
    const request = newJob();
    const answers = await Promise.all(Array.from({ length: 20 }, () => storeJob(at.db, request)));
    const accepted = answers.flatMap((answer) => (answer.kind === 'accepted' ? [answer] : []));
    expect(accepted).toHaveLength(20);
    expect(new Set(accepted.map((each) => `${each.job} ${each.session} ${each.input}`)).size).toBe(1);
    expect(accepted.filter((each) => each.isNew)).toHaveLength(1);
    expect(await at.db.$count(job, eq(job.key, request.key))).toBe(1);
    expect(await at.db.$count(input, eq(input.session, accepted[0]!.session))).toBe(1);
    expect(await journal(at.db, accepted[0]!.session)).toEqual([
      { kind: 'job.submitted', layer: 'driver', job: accepted[0]!.job, input: accepted[0]!.input },
    ]);
  });

  // Trap: a loser that rolls back half of its rows would leave a session that nobody ever drives.
  test('the losers of a race leave no session behind', async () => {
    const before = await at.db.$count(session);
    const request = newJob();
    await Promise.all(Array.from({ length: 10 }, () => storeJob(at.db, request)));
    expect(await at.db.$count(session)).toBe(before + 1);
  });

  test('the same key with another body is a conflict that names the job', async () => {
    const first = await seedJob(at.db, { key: 'taken' });
    const other = newJob({ key: 'taken', fingerprint: 'g' });
    expect(await storeJob(at.db, other)).toEqual({ kind: 'key_used_for_another_body', job: first.job });
  });

  test('two tenants may use the same key, and share nothing', async () => {
    const mine = await seedJob(at.db, { key: 'same' });
    const theirs = await seedJob(at.db, { key: 'same', tenant: 'other', fingerprint: 'g' });
    expect(theirs.isNew).toBe(true);
    const heads = await at.db
      .select({ head: session.head })
      .from(session)
      .where(sql`${session.id} in (${mine.session}, ${theirs.session})`);
    expect(new Set(heads.map((row) => row.head)).size).toBe(2);
  });

  test('a job of an unknown tenant stores nothing', async () => {
    const before = await at.db.$count(session);
    await expect(storeJob(at.db, newJob({ tenant: 'nobody' }))).rejects.toThrow();
    expect(await at.db.$count(session)).toBe(before);
  });

  // PostgreSQL takes neither a NUL nor half a surrogate pair.
  test('any text can be stored', async () => {
    const accepted = await seedJob(at.db, { text: 'a\0b\uD800c\u{1F600}', sender: 's', ticket: 't' });
    const [row] = await at.db.select().from(input).where(eq(input.id, accepted.input));
    expect(row?.body).toBe('a\uFFFDb\uFFFDc\u{1F600}');
    const { session: owner } = accepted;
    const odd = { id: id('in'), session: owner, kind: 'steer', text: '\0\uDFFF', sender: null } as const;
    expect(await storeInput(at.db, odd)).toBe('accepted');
  });
});

describe('an input', () => {
  test('the same id again is the same input, with one event', async () => {
    const { session: owner } = await seedJob(at.db);
    const request = { id: id('in'), session: owner, kind: 'prompt', text: 'more', sender: null } as const;
    const answers = await Promise.all(Array.from({ length: 6 }, () => storeInput(at.db, request)));
    expect(answers.toSorted()).toEqual(['accepted', 'known', 'known', 'known', 'known', 'known']);
    expect(await kinds(at.db, owner)).toEqual(['job.submitted', 'input.accepted']);
  });

  // Cases 45: an id that is there is never overwritten, whatever has become of what it named.
  test('the same id with another text is a conflict, also when the first one was edited meanwhile', async () => {
    const { session: owner } = await seedJob(at.db);
    const request = { id: id('in'), session: owner, kind: 'prompt', text: 'one', sender: null } as const;
    expect(await storeInput(at.db, request)).toBe('accepted');
    expect(await storeInput(at.db, { ...request, text: 'two' })).toBe('conflict');
    await at.db.update(input).set({ body: 'two' }).where(eq(input.id, request.id));
    expect(await storeInput(at.db, request)).toBe('known');
    expect(await storeInput(at.db, { ...request, text: 'two' })).toBe('conflict');
    const elsewhere = (await seedJob(at.db)).session;
    expect(await storeInput(at.db, { ...request, session: elsewhere })).toBe('conflict');
  });

  test('people and wake-ups are two classes', async () => {
    const { session: owner } = await seedJob(at.db);
    for (const kind of ['prompt', 'steer', 'call_back', 'agent_end', 'directive', 'wake'] as const) {
      await storeInput(at.db, { id: `${owner}/${kind}`, session: owner, kind, text: kind, sender: null });
    }
    const rows = await at.db.select().from(input).where(eq(input.session, owner)).orderBy(input.seq);
    expect(rows.map((row) => `${row.kind} ${row.class}`)).toEqual([
      'prompt people',
      'prompt people',
      'steer people',
      'call_back people',
      'agent_end people',
      'directive wake_up',
      'wake wake_up',
    ]);
  });

  test('past a thousand that wait, a new one is told so and a known one still known', async () => {
    const { session: owner } = await seedJob(at.db);
    await at.db.execute(sql`
      insert into pawl.input (id, session, kind, class, body)
      select ${owner} || '/' || n, ${owner}, 'prompt', 'people', 'x' from generate_series(2, ${POLICY.session.queueMax - 1}) n`);
    const more = (input: string) =>
      storeInput(at.db, { id: input, session: owner, kind: 'prompt', text: 'x', sender: null });
    // Concurrent senders at the edge: exactly one place is left.
    const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => more(`${owner}/last/${n}`)));
    expect(answers.toSorted()).toEqual(['accepted', ...Array.from({ length: 7 }, () => 'full')]);
    expect(await more(`${owner}/2`)).toBe('known');
    await at.db
      .update(input)
      .set({ status: 'consumed' })
      .where(eq(input.id, `${owner}/2`));
    expect(await more(`${owner}/new`)).toBe('accepted');
  });
});

describe('a cancel', () => {
  const request = (turnId: string, change = {}) =>
    ({
      turn: turnId,
      id: id('can'),
      by: 'ann',
      why: 'enough\0',
      decidedBy: 'user',
      detail: 'user_cancel',
      ...change,
    }) as const;

  test('is stored once under its id, with one event', async () => {
    const open = await seedTurn(at.db);
    const mine = request(open.turn);
    expect(await Promise.all([1, 2, 3].map(() => storeCancel(at.db, mine)))).toEqual(['stored', 'stored', 'stored']);
    expect(await at.db.select().from(cancel).where(eq(cancel.turn, open.turn))).toMatchObject([
      { id: mine.id, by: 'ann', why: 'enough\uFFFD', answer: null },
    ]);
    const said = (await journal(at.db, open.session)).filter((event) => event.kind === 'cancel.requested');
    expect(said).toEqual([{ kind: 'cancel.requested', layer: 'turn', id: mine.id, decidedBy: 'user' }]);
  });

  test('of an ended turn, or of none, is answered and leaves nothing', async () => {
    const open = await seedTurn(at.db);
    await at.db.update(turn).set({ endedAt: new Date() }).where(eq(turn.id, open.turn));
    expect(await storeCancel(at.db, request(open.turn))).toBe('already_ended');
    expect(await storeCancel(at.db, request('ses_none/1'))).toBe('no_such_turn');
    expect(await at.db.$count(cancel, eq(cancel.turn, open.turn))).toBe(0);
  });

  test('is seen by a session whose turn has not started yet', async () => {
    const open = await seedTurn(at.db);
    expect(await next(at.db, open.session)).toMatchObject({ kind: 'start', turn: { cancelAsked: false } });
    await storeCancel(at.db, request(open.turn));
    expect(await next(at.db, open.session)).toMatchObject({ kind: 'start', turn: { cancelAsked: true } });
  });
});
