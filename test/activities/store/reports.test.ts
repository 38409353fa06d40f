import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { NewEvent } from '../../../activities/store/events.ts';
import {
  claimReports,
  closeReport,
  HOOKS_RECEIVER,
  type NewReport,
  storeReports,
} from '../../../activities/store/reports.ts';
import { outbox } from '../../../activities/store/schema.ts';
import { testDatabase } from '../../support/database.ts';
import { journal, seedTurn, type SeededTurn } from './seed.ts';

let at: Awaited<ReturnType<typeof testDatabase>>;
let on: SeededTurn;
beforeAll(async () => {
  at = await testDatabase();
});
beforeEach(async () => {
  await at.db.delete(outbox).where(eq(outbox.receiver, HOOKS_RECEIVER));
  on = await seedTurn(at.db);
});
afterAll(() => at.close());

const report = (id: string): NewReport => ({ id, body: { event: 'Stop', session: on.session, turn: on.turn } });
const claimed = async (limit = 10) => (await claimReports(at.db, limit, 60_000)).map(({ id }) => id);

test('a report is kept once, whoever stores it again', async () => {
  for (let time = 0; time < 2; time += 1) await storeReports(at.db, [report('a'), report('b')]);
  expect(await claimed()).toEqual(['a', 'b']);
});

test('of many that look at once each report goes to one, the oldest first', async () => {
  for (const id of ['a', 'b', 'c', 'd', 'e', 'f']) await storeReports(at.db, [report(id)]);
  expect(await claimed(2)).toEqual(['a', 'b']);
  const rest = await Promise.all([claimed(2), claimed(2), claimed(2), claimed(2)]);
  expect(rest.flat().toSorted()).toEqual(['c', 'd', 'e', 'f']);
});

test('one that is held is nobody else’s until the lease is over; one that is told is nobody’s', async () => {
  await storeReports(at.db, [report('a'), report('b')]);
  const [first] = await claimReports(at.db, 1, 60_000);
  await closeReport(at.db, first!, []);
  expect(await claimed()).toEqual(['b']);
  expect(await claimed()).toEqual([]);
  await at.db.update(outbox).set({ body: sql`${outbox.body} || '{"heldUntil": "2020-01-01T00:00:00Z"}'` });
  expect(await claimed()).toEqual(['b']);
});

test('what went wrong is recorded once, however often it is told', async () => {
  await storeReports(at.db, [report('a')]);
  const [mine] = await claimReports(at.db, 1, 60_000);
  const event = { kind: 'hook.failed', layer: 'turn', hook: 'Stop 1', why: 'exit code 1' } as const;
  const failure: NewEvent = { key: 'hook/a/0', turn: on.turn, event };
  for (let time = 0; time < 2; time += 1) await closeReport(at.db, mine!, [failure]);
  expect((await journal(at.db, on.session)).filter(({ kind }) => kind === 'hook.failed')).toEqual([event]);
});
