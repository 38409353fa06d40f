import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Db } from '../../../activities/store/database.ts';
import { rootHash } from '../../../activities/store/hash.ts';
import {
  ancestorsAmong,
  ChainCache,
  chainOn,
  type Link,
  loadChain,
  loadOwnChain,
  writeLinks,
} from '../../../activities/store/transcript.ts';
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

describe('a chain that can’t be read', () => {
  // Trap: what is missing looks like a beginning, and the model goes on with half a conversation.
  test.each([
    ['in the middle', 3],
    ['past what is read at once', 250],
    ['its first message', 0],
  ])('a missing message (%s) is an error, not the beginning', async (_name, gone) => {
    const links = await chain(...Array.from({ length: 500 }, (_, n) => (n % 2 ? said(`${n}`) : user(`${n}`))));
    await at.db.delete(message).where(eq(message.hash, links[gone]!.hash));
    await expect(loadChain(at.db, new ChainCache(), headOf(links))).rejects.toMatchObject({
      code: 'context.missing_parent',
    });
    // What was read before is still known, and does not hide it from another process.
    const compacted = { kind: 'compaction', text: '', objective: '', todos: [], keptFrom: 499 } as const;
    const [summary] = chainOn(links.at(-1)!, [compacted], oneToken);
    await at.db.transaction((tx) => writeLinks(tx, [summary!]));
    expect((await loadChain(at.db, new ChainCache(), summary!.hash)).map(({ depth }) => depth)).toEqual([
      499, 500, 501,
    ]);
  });

  test('a head that names nothing is one too, unless it is the empty chain of this very session', async () => {
    const owner = { tenant: 'default', session: id('ses') };
    const load = (head: string) => loadOwnChain(at.db, new ChainCache(), owner, head);
    expect(await load(rootHash(owner.tenant, owner.session))).toEqual([]);
    for (const head of [rootHash('other', owner.session), rootHash(owner.tenant, id('ses')), 'f'.repeat(64)]) {
      await expect(load(head)).rejects.toMatchObject({ code: 'context.unknown_head' });
    }
  });
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
  expect(store.asked() - before).toBe(1);
});

test('links that are cached while they are written need no reading at all', async () => {
  const links = await chain(user('a'), said('b'));
  const [cache, store] = [new ChainCache(), counting(at.db)];
  cache.add(links);
  expect(texts(await loadChain(store.db, cache, headOf(links)))).toEqual(['user a', 'assistant b']);
  expect(store.asked()).toBe(0);
});

test('a cache forgets what was used longest ago, by size, and the chain is whole all the same', async () => {
  const links = await chain(user('a'), said('b'), user('c'));
  const filler = (n: number, tokens: number): Link => ({ ...links[0]!, hash: `filler ${n}`, tokens });
  const cache = new ChainCache(100_000);
  cache.add(links);
  cache.add(Array.from({ length: 9 }, (_, n) => filler(n, 2_500 - 150)));
  expect(cache.get(links[0]!.hash)).toBe(links[0]);
  // Loading a chain is using it.
  await loadChain(at.db, cache, headOf(links));
  cache.add([filler(9, 2_500)]);
  expect([cache.get('filler 0'), cache.get(links[0]!.hash)]).toEqual([undefined, links[0]]);
  cache.add([filler(10, 25_000)]);
  expect(cache.get(links[2]!.hash)).toBeUndefined();
  expect(await loadChain(at.db, cache, headOf(links))).toEqual(links);
});

test.each([
  ['some', 2, ['user 1', 'assistant 2', 'compaction sum', 'user new']],
  ['none', 4, ['compaction sum', 'user new']],
])(
  'a compaction keeps %s of the messages before it: they are read, what is older is not',
  async (_name, from, expected) => {
    const sum = { kind: 'compaction', text: 'sum', keptFrom: from, objective: '', todos: [] } as const;
    const links = await chain(user('0'), user('1'), said('2'), sum, user('new'));
    const cache = new ChainCache();
    expect(texts(await loadChain(at.db, cache, headOf(links)))).toEqual(expected);
    expect(texts(await loadChain(at.db, cache, headOf(links)))).toEqual(expected);
  },
);

test('what a compaction kept may reach behind an earlier one', async () => {
  const sum = (text: string, keptFrom: number) =>
    ({ kind: 'compaction', text, keptFrom, objective: '', todos: [] }) as const;
  const links = await chain(user('0'), user('1'), sum('first', 2), user('3'), sum('second', 2), user('new'));
  expect(texts(await loadChain(at.db, new ChainCache(), headOf(links)))).toEqual([
    'user 1',
    'compaction first',
    'user 3',
    'compaction second',
    'user new',
  ]);
});

test('which messages lie on a chain is known however far back, and on this chain only', async () => {
  const links = await chain(user('0'), user('1'), said('2'), user('3'));
  const [other] = chainOn({ hash: links[0]!.hash, depth: 1 }, [user('1 elsewhere')], oneToken);
  await at.db.transaction((tx) => writeLinks(tx, [other!]));
  const asked = [links[1]!.hash, other!.hash];
  expect(await ancestorsAmong(at.db, headOf(links), asked)).toEqual(new Set([links[1]!.hash]));
  expect(await ancestorsAmong(at.db, headOf(links), [])).toEqual(new Set());
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
