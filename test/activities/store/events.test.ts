import { afterAll, beforeAll, expect, test } from 'vitest';
import { eq } from 'drizzle-orm';
import { type NewEvent, readEvents, recordEvents } from '../../../activities/store/events.ts';
import { finishCall } from '../../../activities/store/ledger.ts';
import { closeSample } from '../../../activities/store/samples.ts';
import { event, session } from '../../../activities/store/schema.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { closing, id, journal, seedCalls, seedJob, seedTurn } from './seed.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
});
afterAll(() => at.close());

const dropped = (key: string): NewEvent => ({
  key,
  turn: null,
  event: { kind: 'input.dropped', layer: 'driver', input: key, status: 'x', by: null, why: null },
});

test('numbers follow the order of writing, without a gap', async () => {
  const { session: owner } = await seedJob(at.db);
  await recordEvents(at.db, owner, [dropped('a'), dropped('b')]);
  await recordEvents(at.db, owner, []);
  await recordEvents(at.db, owner, [dropped('c')]);
  const rows = await readEvents(at.db, owner, 1);
  expect(rows.map((row) => [row.seq, row.event.kind === 'input.dropped' && row.event.input])).toEqual([
    [2, 'a'],
    [3, 'b'],
    [4, 'c'],
  ]);
  expect(await readEvents(at.db, owner, 3)).toHaveLength(1);
  expect(await readEvents(at.db, owner, 0, 2)).toHaveLength(2);
});

test('a key is written once, also within one write; the first body stands', async () => {
  const { session: owner } = await seedJob(at.db);
  await recordEvents(at.db, owner, [dropped('a'), dropped('a'), dropped('b')]);
  await recordEvents(at.db, owner, [{ ...dropped('b'), key: 'a' }]);
  const rows = await readEvents(at.db, owner, 1);
  expect(rows.map((row) => row.event.kind === 'input.dropped' && row.event.input)).toEqual(['a', 'b']);
});

test('a child session writes into the stream of its root, and keys are apart by stream', async () => {
  const [root, child] = [await seedJob(at.db), await seedJob(at.db)];
  await at.db.update(session).set({ stream: root.session }).where(eq(session.id, child.session));
  await recordEvents(at.db, child.session, [dropped('same')]);
  await recordEvents(at.db, (await seedJob(at.db)).session, [dropped('same')]);
  const rows = await at.db.select().from(event).where(eq(event.stream, root.session)).orderBy(event.seq);
  expect(rows.map((row) => [row.seq, row.session])).toEqual([
    [1, root.session],
    [2, child.session],
  ]);
});

// Notes and names come from outside: an event that can't be stored would end its turn as ERROR/storage.
test('a body with a NUL or half a surrogate can be stored', async () => {
  const { session: owner } = await seedJob(at.db);
  await recordEvents(at.db, owner, [
    {
      ...dropped('k'),
      event: { kind: 'input.dropped', layer: 'driver', input: 'a\0b', status: '\uD800', by: null, why: null },
    },
  ]);
  expect((await journal(at.db, owner))[1]).toMatchObject({ input: 'a\uFFFDb', status: '\uFFFD' });
});

interface Follower {
  readonly seen: string[];
  readonly done: Promise<void>;
}

/** Reads like an SSE client with Last-Event-ID: what is above the last number it saw, again and again. */
function follow(stream: string, isOver: () => boolean): Follower {
  const seen: string[] = [];
  const read = async () => {
    let last = 0;
    for (;;) {
      const over = isOver();
      const rows = await readEvents(at.db, stream, last, 50);
      for (const row of rows) {
        expect(row.seq).toBeGreaterThan(last);
        last = row.seq;
        seen.push(`${row.event.kind} ${'input' in row.event ? row.event.input : ''}`);
      }
      if (over && rows.length === 0) return;
    }
  };
  return { seen, done: read() };
}

// Trap: a plain sequence lets a later number commit first; the reader steps over the earlier one for ever.
test('a reader that only asks for later numbers misses nothing of eight writers', async () => {
  const { session: owner } = await seedJob(at.db);
  let over = false;
  const readers = [follow(owner, () => over), follow(owner, () => over)];
  const write = async (writer: number) => {
    for (let n = 0; n < 100; n += 1) {
      // The counter is the last statement of a longer transaction, as everywhere in the store.
      await at.db.transaction(async (tx) => {
        await tx.select().from(session).where(eq(session.id, owner));
        await recordEvents(tx, owner, [dropped(`${writer}/${n}`)]);
      });
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, writer) => write(writer)));
  over = true;
  await Promise.all(readers.map((reader) => reader.done));
  const stored = (await journal(at.db, owner)).map((body) => `${body.kind} ${'input' in body ? body.input : ''}`);
  expect(stored).toHaveLength(801);
  for (const { seen } of readers) expect(seen).toEqual(stored);
  for (let writer = 0; writer < 8; writer += 1) {
    const mine = stored.flatMap((line) => (line.includes(` ${writer}/`) ? [Number(line.split('/')[1])] : []));
    expect(mine).toEqual(Array.from({ length: 100 }, (_, n) => n));
  }
}, 60_000);

// The single-statement commits number their events by the same counter.
test('… nor of commits, results and events on one stream at once', async () => {
  const turns = await Promise.all(Array.from({ length: 4 }, () => seedTurn(at.db)));
  const root = turns[0]!.session;
  for (const turn of turns) await at.db.update(session).set({ stream: root }).where(eq(session.id, turn.session));
  const keys = await Promise.all(
    turns.map((turn) => seedCalls(at.db, turn, ...Array.from({ length: 12 }, () => 'none' as const))),
  );
  let over = false;
  const reader = follow(root, () => over);
  await Promise.all(
    turns.flatMap((turn, at_) => [
      ...keys[at_]!.map((key) =>
        finishCall(at.db, {
          turn: turn.turn,
          session: turn.session,
          tenant: 'default',
          key,
          tool: 't',
          status: 'ok',
          text: '',
          output: null,
          note: null,
          effect: null,
          events: [],
        }),
      ),
      ...Array.from({ length: 8 }, () =>
        closeSample(at.db, { ...closing(turn, { text: id(), events: [dropped(id())] }), reply: null }),
      ),
      ...Array.from({ length: 8 }, () => recordEvents(at.db, turn.session, [dropped(id())])),
    ]),
  );
  over = true;
  await reader.done;
  const stored = (await journal(at.db, root)).map((body) => `${body.kind} ${'input' in body ? body.input : ''}`);
  expect(reader.seen).toEqual(stored);
  expect(stored.filter((line) => line.startsWith('call.finished'))).toHaveLength(48);
  expect(stored.filter((line) => line.startsWith('input.dropped'))).toHaveLength(64);
}, 60_000);
