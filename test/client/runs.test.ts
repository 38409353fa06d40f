import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { event, input, job } from '../../activities/store/schema.ts';
import { showText } from '../../client/cli/show-text.ts';
import { createApp } from '../../client/http/app.ts';
import { JobWithResult } from '../../client/http/schemas.ts';
import { BadPosition, EngineAway } from '../../client/index.ts';
import { addTenant, seedJob, seedTurn, storeOnly } from './seed.ts';

let at: Awaited<ReturnType<typeof storeOnly>>;
beforeAll(async () => {
  at = await storeOnly();
  await addTenant(at.database, 'other');
});
afterAll(() => at.close());

describe('submit while the engine is away', () => {
  test('throws EngineAway and keeps the row, so that a sweeper finds it', async () => {
    await expect(at.runs.submit({ tenant: 'default', key: 'away', text: 'x' })).rejects.toBeInstanceOf(EngineAway);
    const [row] = await at.database.db
      .select({ status: input.status, dispatchedAt: input.dispatchedAt })
      .from(input)
      .innerJoin(job, eq(job.input, input.id))
      .where(eq(job.key, 'away'));
    expect(row).toEqual({ status: 'queued', dispatchedAt: null });
  });

  test.each([
    [{ agent: 'nobody' }, { kind: 'unknown_agent', asked: 'nobody', known: ['tester'] }],
    // A budget that nobody could keep.
    [{ maxUsd: 1 }, { kind: 'budget_refused', why: expect.stringContaining('No price of none is known') }],
    // JSON has no such numbers: they would come back as no limit.
    [{ maxUsd: NaN }, { kind: 'budget_refused', why: "A maxUsd of NaN can't be kept: give a number above 0." }],
    [
      { maxUsd: Infinity },
      { kind: 'budget_refused', why: "A maxUsd of Infinity can't be kept: give a number above 0." },
    ],
    [{ workspace: '../etc' }, { kind: 'workspace_refused', why: expect.stringContaining('outside') }],
  ])('refuses %j before anything is stored', async (wish, refusal) => {
    expect(await at.runs.submit({ tenant: 'default', key: JSON.stringify(wish), text: 'x', ...wish })).toEqual(refusal);
    expect(await at.database.db.$count(job, eq(job.key, JSON.stringify(wish)))).toBe(0);
  });

  test('the same key with another body is a conflict, and names the job', async () => {
    const first = await at.runs.submit({ tenant: 'default', key: 'twice', text: 'one' }).catch(() => null);
    expect(first).toBeNull();
    const [row] = await at.database.db.select().from(job).where(eq(job.key, 'twice'));
    const again = await at.runs.submit({ tenant: 'default', key: 'twice', text: 'two' });
    expect(again).toEqual({ kind: 'conflict', job: row?.id });
  });
});

// Cases 47: a cursor that has less than the whole sort key skips or repeats rows of one instant.
describe('pages', () => {
  test('jobs of the same microsecond come once each, whatever is inserted meanwhile', async () => {
    await addTenant(at.database, 'pages');
    const made: string[] = [];
    for (let i = 0; i < 5; i += 1) made.push((await seedJob(at.database, 'pages')).job);
    await at.database.db
      .update(job)
      .set({ createdAt: sql`'2026-01-02T03:04:05.678901Z'::timestamptz` })
      .where(eq(job.tenant, 'pages'));
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await at.runs.list('pages', { limit: 2, cursor });
      seen.push(...page.jobs.map(({ id }) => id));
      await seedJob(at.database, 'pages');
      cursor = page.next ?? undefined;
    } while (cursor !== undefined);
    expect(seen.toSorted()).toEqual(made.toSorted());
    expect(new Set(seen).size).toBe(5);
  });

  test('a cursor is bound to its filter and its tenant', async () => {
    const { next } = await at.runs.list('pages', { limit: 2 });
    await expect(at.runs.list('pages', { cursor: next!, state: 'done' })).rejects.toBeInstanceOf(BadPosition);
    await expect(at.runs.list('other', { cursor: next! })).rejects.toBeInstanceOf(BadPosition);
  });

  test.each(['', 'x', 'bm90IGpzb24', Buffer.from('["2026","a","b"]').toString('base64url')])(
    'the cursor %j is refused',
    async (cursor) => {
      await expect(at.runs.list('pages', { cursor })).rejects.toBeInstanceOf(BadPosition);
    },
  );
});

// Case 49: one check for every verb, and one shape for "not yours" and "not there".
describe('a job of another tenant', () => {
  const verbs = {
    get: (id: string) => at.runs.get('other', id),
    show: (id: string) => at.runs.show('other', id),
    cancel: (id: string) => at.runs.cancel('other', id, { by: 'test' }),
    events: async (id: string) => (await at.runs.events('other', id).next()).value,
  };
  test.each(Object.entries(verbs))('%s sees nothing', async (_name, verb) => {
    const { job: id } = await seedJob(at.database);
    expect(await verb(id)).toBeNull();
    expect(await verb('job_unknown')).toBeNull();
    expect(await verb('job_\0')).toBeNull();
    expect(await verb("' or 1=1")).toBeNull();
  });

  test('is not listed', async () => {
    await seedJob(at.database);
    expect((await at.runs.list('other')).jobs).toEqual([]);
    expect(await at.runs.ps('other')).toEqual([]);
  });
});

describe('cancel', () => {
  test('withdraws a job whose turn has not opened, once, with an event', async () => {
    const { job: id, session, input: prompt } = await seedJob(at.database);
    expect(await at.runs.cancel('default', id, { by: 'a person', why: 'not needed\0 any more' })).toBe('withdrawn');
    // Whoever comes second is not the one who took it back.
    expect(await at.runs.cancel('default', id, { by: 'somebody else', why: 'me too' })).toBe('withdrawn');
    const rows = await at.database.db.select().from(event).where(eq(event.stream, session));
    const asked = { by: 'a person', why: 'not needed\ufffd any more' };
    expect(rows.map((row) => row.body)).toEqual([
      { kind: 'job.submitted', layer: 'driver', job: id, input: prompt },
      { kind: 'input.dropped', layer: 'driver', input: prompt, status: 'withdrawn', ...asked },
    ]);
    const dropped = { as: 'withdrawn', ...asked, at: expect.any(String) };
    expect(await at.runs.get('default', id)).toMatchObject({ state: 'done', end: null, dropped });
    const answered = await createApp(at.runs).request(`/v1/jobs/${id}`);
    expect(JobWithResult.parse(await answered.json())).toMatchObject({ dropped });
    const shown = await at.runs.show('default', id);
    expect(shown && showText(shown, Date.now())).toContain(
      '\n  withdrawn before it began by a person: “not needed\ufffd any more”\n',
    );
    expect((await at.runs.events('default', id, { after: 2 }).next()).value).toMatchObject({ dropped });
  });

  test('stores its row before the engine is asked, and is safe to repeat', async () => {
    const made = await seedJob(at.database);
    const turn = await seedTurn(at.database, made);
    const ask = () => at.runs.cancel('default', made.job, { by: 'test', why: 'enough', id: 'mine' });
    await expect(ask()).rejects.toBeInstanceOf(EngineAway);
    await expect(ask()).rejects.toBeInstanceOf(EngineAway);
    const { rows } = await at.database.db.execute(
      sql`select id, by, why, decided_by from pawl.cancel where turn = ${turn}`,
    );
    expect(rows).toEqual([{ id: `${made.session}/mine`, by: 'test', why: 'enough', decided_by: 'user' }]);
  });
});

test('ps says of a running row what the engine says, and when it does not answer', async () => {
  await addTenant(at.database, 'ps');
  const queued = await seedJob(at.database, 'ps');
  const running = await seedJob(at.database, 'ps');
  await seedTurn(at.database, running, { owner: 'ps' });
  const open = await at.runs.ps('ps');
  expect(open.map(({ job: { id }, engine, agrees }) => [id, engine, agrees])).toEqual([
    [running.job, 'away', false],
    [queued.job, null, true],
  ]);
});
