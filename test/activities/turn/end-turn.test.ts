import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Deps } from '../../../activities/deps.ts';
import { lockTurn } from '../../../activities/store/fence.ts';
import { session, turn } from '../../../activities/store/schema.ts';
import { ChainCache, loadChain } from '../../../activities/store/transcript.ts';
import { writeTurnEnd } from '../../../activities/turn/end-turn.ts';
import type { End } from '../../../workflows/core/ends.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { join } from '../store/ending.ts';
import { seedJob, seedTurn, type SeededTurn, send } from '../store/seed.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
});
afterAll(() => at.close());

const TERMINATED: End = {
  reason: 'INTERRUPTED',
  detail: 'terminated',
  decidedBy: 'user',
  signal: { name: 'engine', event: 'terminated' },
  phase: 'cleanup',
};

async function endWith(on: SeededTurn, end: End): Promise<void> {
  const nothing = { moved: () => {}, wake: () => {}, has: () => false };
  const deps = { database: at, chains: new ChainCache(), notifier: nothing, reporter: nothing, hooks: nothing };
  const [row] = await at.db
    .select({ head: turn.head, stream: session.stream, tenant: session.tenant })
    .from(turn)
    .innerJoin(session, eq(session.id, turn.session))
    .where(eq(turn.id, on.turn));
  const owner = { ...row!, id: on.turn, session: on.session };
  const author = { by: null, why: null };
  const facts = { end, step: 0, runningMs: null, author, recordedBy: 'recovery' } as const;
  await writeTurnEnd(deps as unknown as Deps, owner, facts, (tx) => lockTurn(tx, on.fence));
}

const chainOf = async (on: SeededTurn) => {
  const [row] = await at.db.select({ head: session.head }).from(session).where(eq(session.id, on.session));
  return (await loadChain(at.db, new ChainCache(), row!.head)).map(({ body }) =>
    body.kind === 'user' ? `${body.input}: ${body.text}` : body.kind,
  );
};

describe('a turn that ends before its first sample', () => {
  // Its input counts as heard: without this nobody would ever know what had been asked.
  test('interrupted, keeps its prompt in the transcript, before the marker', async () => {
    const job = await seedJob(at.db);
    const on = await seedTurn(at.db, job.session);
    await endWith(on, TERMINATED);
    expect(await chainOf(on)).toEqual([`${job.input}: do it`, 'interruption']);
    // The next one of the session goes on from there.
    const prompt = await send(at.db, job.session, 'prompt', 'and now?');
    const later = await seedTurn(at.db, job.session);
    await endWith(later, TERMINATED);
    expect(await chainOf(on)).toEqual([`${job.input}: do it`, 'interruption', `${prompt}: and now?`, 'interruption']);
  });

  test('interrupted with its prompt in the transcript already, has it there once', async () => {
    const job = await seedJob(at.db);
    const on = await seedTurn(at.db, job.session);
    await join(at.db, on, job.input);
    await endWith(on, TERMINATED);
    expect(await chainOf(on)).toEqual([`${job.input}: text`, 'interruption']);
  });
});
