import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { storeInput } from '../../activities/store/intake.ts';
import { input, session } from '../../activities/store/schema.ts';
import { chainOn, writeLinks } from '../../activities/store/transcript.ts';
import { inputLine } from '../../client/cli/input-lines.ts';
import { messageLine } from '../../client/cli/session-life-commands.ts';
import { sessionLine } from '../../client/cli/session-line.ts';
import { BadPosition, EngineAway } from '../../client/index.ts';
import { addTenant, seedJob, seedTurn, storeOnly } from './seed.ts';

let at: Awaited<ReturnType<typeof storeOnly>>;
beforeAll(async () => {
  at = await storeOnly();
  await addTenant(at.database, 'other');
});
afterAll(() => at.close());

const rowsOf = (of: string) => at.database.db.select().from(input).where(eq(input.session, of)).orderBy(input.seq);

test('a prompt that comes while the engine is away is kept, and is the same one when it is sent again', async () => {
  const { session: of, job } = await seedJob(at.database);
  const prompt = { text: 'go on', id: 'mine', by: 'pat' };
  await expect(at.runs.send('default', of, prompt)).rejects.toBeInstanceOf(EngineAway);
  await expect(at.runs.send('default', job, prompt)).rejects.toBeInstanceOf(EngineAway);
  const rows = await rowsOf(of);
  expect(rows).toMatchObject([
    { kind: 'prompt' },
    { kind: 'prompt', body: 'go on', sender: 'pat', dispatchedAt: null },
  ]);
  expect(await at.runs.send('default', of, { ...prompt, text: 'other' })).toEqual({
    kind: 'conflict',
    input: rows[1]?.id,
  });
  // A sender's id names something in one session only, and nothing of anybody else's.
  const elsewhere = await seedJob(at.database, 'other');
  await expect(at.runs.send('other', elsewhere.session, { ...prompt, text: 'theirs' })).rejects.toBeInstanceOf(
    EngineAway,
  );
  expect((await rowsOf(elsewhere.session))[1]?.id).not.toBe(rows[1]?.id);
});

test('past a thousand that wait a sender is told how many do', async () => {
  const { session: of } = await seedJob(at.database);
  await at.database.db.execute(sql`insert into pawl.input (id, session, kind, class, body)
    select ${of} || '/' || n, ${of}, 'prompt', 'people', 'x' from generate_series(2, 1000) n`);
  expect(await at.runs.send('default', of, { text: 'x', by: 'pat' })).toEqual({ kind: 'full', waiting: 1_000 });
});

test('another tenant’s session, job and input look like unknown ones, for every verb', async () => {
  const { session: of, job, input: mine } = await seedJob(at.database);
  const by = 'eve';
  for (const id of [of, job, 'ses_none', 'job_none', '\0']) {
    expect(await at.runs.send('other', id, { text: 'x', by })).toBeNull();
    expect(await at.runs.inputs('other', id)).toBeNull();
    expect(await at.runs.session('other', id)).toBeNull();
    expect(await at.runs.messages('other', id)).toBeNull();
    expect(await at.runs.fork('other', id, { by })).toBeNull();
    expect(await at.runs.rewind('other', id, { to: 'start', by })).toBeNull();
    expect(await at.runs.rename('other', id, { title: 'x', by })).toBe(false);
    expect(await at.runs.archive('other', id, { archived: true, by })).toBeNull();
  }
  for (const id of [mine, 'in_none', '\0']) {
    expect(await at.runs.editInput('other', id, { text: 'x', by })).toBeNull();
    expect(await at.runs.withdrawInput('other', id, { by })).toBeNull();
    expect(await at.runs.lockInput('other', id, { by })).toBeNull();
    expect(await at.runs.unlockInput('other', id, { by })).toBeNull();
  }
  expect((await rowsOf(of)).map(({ body, status }) => [body, status])).toEqual([['text', 'queued']]);
});

test('the queue is listed in pages, with who sent each and what became of it', async () => {
  const job = await seedJob(at.database);
  const turn = await seedTurn(at.database, job, { end: { endedAt: new Date(), endReason: 'COMPLETED' } });
  const { db } = at.database;
  const set = (id: string, change: Partial<typeof input.$inferInsert>) =>
    db.update(input).set(change).where(eq(input.id, id));
  await set(job.input, { status: 'consumed', turn, message: 'm' });
  const sent: string[] = [];
  for (const text of ['taken back', 'being edited', 'last']) {
    const id = `${job.session}/${sent.length}`;
    await storeInput(db, { id, session: job.session, kind: 'prompt', text, sender: 'ann' });
    sent.push(id);
  }
  await at.runs.withdrawInput('default', sent[0]!, { by: 'bob', why: 'no need' }).catch(() => {});
  const lock = await at.runs.lockInput('default', sent[1]!, { by: 'bob' });
  expect(await at.runs.withdrawInput('default', sent[0]!, { by: 'eve' })).toEqual({ kind: 'before', by: 'bob' });
  const first = await at.runs.inputs('default', job.job, { limit: 3 });
  expect(first?.inputs).toMatchObject([
    { id: job.input, status: 'consumed', turn, end: 'COMPLETED', message: 'm', lock: null, dropped: null },
    { id: sent[0], status: 'withdrawn', by: 'ann', dropped: { by: 'bob', why: 'no need', at: expect.any(String) } },
    { id: sent[1], status: 'queued', lock: { by: 'bob', until: (lock as { until: string }).until } },
  ]);
  const second = await at.runs.inputs('default', job.session, { limit: 3, cursor: first?.next ?? '' });
  expect(second).toMatchObject({ inputs: [{ id: sent[2], text: 'last' }], next: null });
  const open = await at.runs.inputs('default', job.session, { waiting: true });
  expect(open?.inputs.map(({ id }) => id)).toEqual(sent.slice(1));
  await expect(at.runs.inputs('default', job.session, { cursor: 'x' })).rejects.toBeInstanceOf(BadPosition);
  const now = Date.parse(first!.inputs[1]!.createdAt) + 5_000;
  expect(first!.inputs.slice(0, 2).map((each) => inputLine(each, now))).toEqual([
    expect.stringMatching(
      new RegExp(`^${job.input}  prompt  heard by turn ${turn} \\(COMPLETED\\)\n  sent .*ago: text$`),
    ),
    `${sent[0]}  prompt  withdrawn by bob: “no need”\n  sent by ann 5.0 s ago: taken back`,
  ]);
});

test('sessions are listed newest first, once each also within one microsecond; a cursor is good for its list only', async () => {
  await addTenant(at.database, 'lists');
  const made: string[] = [];
  for (let n = 0; n < 5; n += 1) made.push((await seedJob(at.database, 'lists')).session);
  await at.database.db
    .update(session)
    .set({ createdAt: sql`'2026-01-02T03:04:05.678901Z'::timestamptz` })
    .where(eq(session.tenant, 'lists'));
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await at.runs.sessions('lists', { limit: 2, cursor });
    seen.push(...page.sessions.map(({ id }) => id));
    cursor = page.next ?? undefined;
    if (cursor) await expect(at.runs.sessions('default', { cursor })).rejects.toBeInstanceOf(BadPosition);
  } while (cursor);
  expect(seen).toEqual(made.toSorted().toReversed());
  const [one] = (await at.runs.sessions('lists', { limit: 1 })).sessions;
  expect(one).toMatchObject({ state: 'open', agent: 'tester', waiting: 1, turn: null, forkedFrom: null, plan: false });
  expect(sessionLine(one!, Date.parse(one!.createdAt) + 60_000)).toBe(
    `${one!.id}  idle, 1 waiting  1 min 0 s old  tester`,
  );
});

test('the transcript is read from its end, and from any other of its messages', async () => {
  const { session: of } = await seedJob(at.database);
  const { db } = at.database;
  const [row] = await db.select().from(session).where(eq(session.id, of));
  const call = { id: 'c', name: 'look', arguments: '{}' };
  const links = chainOn(
    { hash: row!.head, depth: 0 },
    [
      { kind: 'user', text: 'one', input: 'i', source: 'prompt' },
      {
        kind: 'assistant',
        text: 'two',
        reasoning: '',
        calls: [call],
        provider: 'p',
        model: 'm',
        extra: {},
        cut: false,
      },
      { kind: 'tool_result', ordinal: 0, callId: 'c', tool: 'look', text: 'three', isError: false, blob: null },
    ],
    () => 1,
  );
  await db.transaction((tx) => writeLinks(tx, links));
  await db.update(session).set({ head: links[2]!.hash }).where(eq(session.id, of));
  const page = await at.runs.messages('default', of, { limit: 2 });
  expect(page).toMatchObject({
    head: links[2]!.hash,
    messages: [
      { depth: 3, kind: 'tool_result', text: 'three', tools: ['look'] },
      { depth: 2, kind: 'assistant', text: 'two', tools: ['look'], hash: links[1]!.hash },
    ],
    next: links[0]!.hash,
  });
  const rest = await at.runs.messages('default', of, { from: page!.next!.slice(0, 8) });
  expect(rest).toMatchObject({ messages: [{ depth: 1, kind: 'user', text: 'one', tools: [] }], next: null });
  expect(messageLine(page!.messages[1]!)).toBe(`    2  ${links[1]!.hash.slice(0, 12)}  assistant [look]  two`);
  await expect(at.runs.messages('default', of, { from: 'ffffffff' })).rejects.toBeInstanceOf(BadPosition);
});
