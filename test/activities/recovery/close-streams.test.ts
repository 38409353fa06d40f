import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Deps } from '../../../activities/deps.ts';
import { closeLeftStreams } from '../../../activities/recovery/close-streams.ts';
import { turn, usage } from '../../../activities/store/schema.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { CANCELLED, end } from '../store/ending.ts';
import { closing, id, journal, open, seedTurn, TOKENS } from '../store/seed.ts';
import { closeSample } from '../../../activities/store/samples.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
});
afterAll(() => at.close());

const sweep = () => closeLeftStreams({ database: at } as unknown as Deps);

// The worker was still busy, or dead, when the cleanup's time was over and the end was written.
test('a stream that its turn left open gets its end once its cleanup is long over, once', async () => {
  const on = await seedTurn(at.db);
  const one = { sample: id(), attempt: id('att') };
  await open(at.db, on, one);
  await end(at.db, on, CANCELLED);
  const ends = async () => (await journal(at.db, on.session)).filter(({ kind }) => kind === 'stream.ended');
  await sweep();
  expect(await ends()).toEqual([]);
  await at.db.update(turn).set({ endedAt: sql`clock_timestamp() - interval '31 seconds'` }).where(eq(turn.id, on.turn));
  await sweep();
  await sweep();
  expect(await ends()).toMatchObject([{ attempt: one.attempt, reason: 'lost', decidedBy: 'runtime' }]);
  // Should its worker come back after all, what it spent is still written down.
  await expect(closeSample(at.db, closing(on, one))).rejects.toMatchObject({ code: 'turn.already_ended' });
  expect(await ends()).toHaveLength(1);
  expect(await at.db.select().from(usage).where(eq(usage.attempt, one.attempt))).toMatchObject([
    { ...TOKENS, costMicroUsd: 79, wasted: true },
  ]);
});
