import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Db } from '../../../activities/store/database.ts';
import { rootHash } from '../../../activities/store/hash.ts';
import { ChainCache, chainOn, type Link, loadChain, writeLinks } from '../../../activities/store/transcript.ts';
import { message } from '../../../activities/store/schema.ts';
import type { Message } from '../../../workflows/core/transcript.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { id, oneToken, said, user } from './seed.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
});
afterAll(() => at.close());

async function chain(...bodies: readonly Message[]): Promise<readonly Link[]> {
  const links = chainOn({ hash: rootHash('default', id()), depth: 0 }, bodies, oneToken);
  await at.db.transaction(async (tx) => {
    for (let from = 0; from < links.length; from += 500) await writeLinks(tx, links.slice(from, from + 500));
  });
  return links;
}

const headOf = (links: readonly Link[]) => links.at(-1)!.hash;
const texts = (links: readonly Link[]) => links.map(({ body }) => body.kind + ('text' in body ? ` ${body.text}` : ''));

/** A database that counts what it is asked. */
function counting(db: Db): { db: Db; asked: () => number } {
  let asked = 0;
  const execute = (...args: Parameters<Db['execute']>) => {
    asked += 1;
    return db.execute(...args);
  };
  return { db: { execute } as unknown as Db, asked: () => asked };
}

test('a chain of 1,100 links comes back whole and in order', async () => {
  const links = await chain(...Array.from({ length: 1_100 }, (_, n) => (n % 2 ? said(`${n}`) : user(`${n}`))));
  const loaded = await loadChain(at.db, new ChainCache(), headOf(links));
  expect(loaded).toEqual(links);
  expect(loaded.map((link) => link.depth)).toEqual(Array.from({ length: 1_100 }, (_, n) => n + 1));
});

test('an empty chain is empty: its head is the root', async () => {
  expect(await loadChain(at.db, new ChainCache(), rootHash('default', id()))).toEqual([]);
});

test.each([
  ['near the head', 3],
  ['past what is read at once', 450],
])('reading stops at the newest compaction (%s)', async (_name, after) => {
  const compaction = (text: string): Message => ({
    kind: 'compaction',
    text,
    keptFrom: 99,
    objective: '',
    todos: [],
  });
  const tail = Array.from({ length: after }, (_, n) => user(`${n}`));
  const links = await chain(user('old'), compaction('first'), user('older'), compaction('second'), ...tail);
  const expected = ['compaction second', ...tail.map((_, n) => `user ${n}`)];
  const cache = new ChainCache();
  expect(texts(await loadChain(at.db, cache, headOf(links)))).toEqual(expected);
  expect(texts(await loadChain(at.db, cache, headOf(links)))).toEqual(expected);
});

test('what the process has seen is not read again; a new head costs one question', async () => {
  const links = await chain(user('a'), said('b'), user('c'));
  const [cache, store] = [new ChainCache(), counting(at.db)];
  await loadChain(store.db, cache, links[1]!.hash);
  const before = store.asked();
  expect(texts(await loadChain(store.db, cache, headOf(links)))).toEqual(['user a', 'assistant b', 'user c']);
  // One for the new link and what is behind it; the root is asked for, since nothing says that it is the root.
  expect(store.asked() - before).toBeLessThanOrEqual(2);
});

test('links that are cached while they are written need no reading but the root', async () => {
  const links = await chain(user('a'), said('b'));
  const [cache, store] = [new ChainCache(), counting(at.db)];
  cache.add(links);
  expect(texts(await loadChain(store.db, cache, headOf(links)))).toEqual(['user a', 'assistant b']);
  expect(store.asked()).toBe(1);
});

test('a cache forgets the oldest, and the chain is whole all the same', async () => {
  const links = await chain(user('a'), said('b'), user('c'));
  const cache = new ChainCache();
  cache.add(links);
  cache.add(Array.from({ length: 20_000 - 1 }, (_, n) => ({ ...links[0]!, hash: `filler ${n}` })));
  expect([cache.get(links[0]!.hash), cache.get(links[2]!.hash)]).toEqual([undefined, links[2]]);
  expect(await loadChain(at.db, cache, headOf(links))).toEqual(links);
});

test('two heads on one past: each sees its own branch', async () => {
  const past = await chain(user('a'), said('b'));
  const [left, right] = ['left', 'right'].map(
    (text) => chainOn({ hash: headOf(past), depth: 2 }, [user(text)], oneToken)[0]!,
  );
  await at.db.transaction((tx) => writeLinks(tx, [left!, right!]));
  const cache = new ChainCache();
  expect(texts(await loadChain(at.db, cache, left!.hash))).toEqual(['user a', 'assistant b', 'user left']);
  expect(texts(await loadChain(at.db, cache, right!.hash))).toEqual(['user a', 'assistant b', 'user right']);
});

test('a link written twice is one row, and equal bodies on other parents are other links', async () => {
  const links = await chain(user('same'), user('same'));
  await at.db.transaction((tx) => writeLinks(tx, links));
  expect(new Set(links.map((link) => link.hash)).size).toBe(2);
  expect(await at.db.$count(message, sql`${message.hash} in (${links[0]!.hash}, ${links[1]!.hash})`)).toBe(2);
});

test('any text survives, and its hash is that of what was stored', async () => {
  const odd = said('a\0b\uD800', ['x']);
  const links = await chain({ ...odd, extra: { 'k\0': ['\uDFFF', 1.5, null, { deep: '\0' }] } } as Message);
  const [loaded] = await loadChain(at.db, new ChainCache(), headOf(links));
  expect(loaded).toEqual(links[0]);
  expect(loaded?.body).toMatchObject({
    text: 'a\uFFFDb\uFFFD',
    extra: { 'k\uFFFD': ['\uFFFD', 1.5, null, { deep: '\uFFFD' }] },
  });
  expect(chainOn({ hash: links[0]!.parent, depth: 0 }, [loaded!.body], oneToken)[0]?.hash).toBe(links[0]!.hash);
});
