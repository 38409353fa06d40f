import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rootHash } from '../../../activities/store/hash.ts';
import { storeInput } from '../../../activities/store/intake.ts';
import { effect, type EffectState, input, session, subAgent, tenant } from '../../../activities/store/schema.ts';
import {
  archiveSession,
  closedBy,
  forkSession,
  renameSession,
  rewindSession,
} from '../../../activities/store/session-life.ts';
import { ChainCache, loadChain } from '../../../activities/store/transcript.ts';
import type { Effect } from '../../../workflows/core/tools.ts';
import type { Message } from '../../../workflows/core/transcript.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { COMPLETED, end, join, row as turnRow } from './ending.ts';
import { seedAgents } from './seed-agents.ts';
import { id, journal, next, seedCalls, seedJob, seedTurn, type SeededTurn, send } from './seed.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
  await at.db.insert(tenant).values({ id: 'other', name: 'other' });
});
afterAll(() => at.close());

const rowOf = async (own: string) => (await at.db.select().from(session).where(eq(session.id, own)))[0]!;
const textsOf = async (own: string) =>
  (await loadChain(at.db, new ChainCache(), (await rowOf(own)).head)).map(({ body }) => `${body.kind} ${body.text}`);
const own = (of: string) => ({ tenant: 'default', session: of, by: 'ann' });

const RESULT = { kind: 'tool_result', callId: 'c', tool: 'shell', text: 'ok', isError: false, blob: null } as const;

/** A turn that asked for calls and ended; what the session's head was before it, and the heads on the way. */
async function turnWith(of: string | undefined, ...effects: readonly Effect[]) {
  const on = await seedTurn(at.db, of);
  const calls = effects.length > 0 ? await seedCalls(at.db, on, ...effects) : [];
  if (effects.length === 0) await join(at.db, on, on.input);
  const chain = await loadChain(at.db, new ChainCache(), (await turnRow(at.db, on)).head);
  const owed = calls.map((_, ordinal): Message => ({ ...RESULT, ordinal }));
  await end(at.db, on, COMPLETED, { chain, owed });
  return { on, session: on.session, base: on.head, head: (await rowOf(on.session)).head, calls };
}

async function nextTurnWith(of: string, ...effects: readonly Effect[]) {
  await send(at.db, of, 'prompt');
  return await turnWith(of, ...effects);
}

const setState = (key: string, state: EffectState) => at.db.update(effect).set({ state }).where(eq(effect.key, key));

describe('a rewind', () => {
  test('gives the session another head, deletes nothing, says who and why, and can be taken back', async () => {
    const first = await turnWith(undefined);
    const second = await nextTurnWith(first.session);
    const wish = { ...own(first.session), why: 'wrong way' };
    expect(await rewindSession(at.db, { ...wish, to: first.head })).toEqual({
      kind: 'rewound',
      at: first.head,
      head: first.head,
      effects: 0,
    });
    expect((await rowOf(first.session)).head).toBe(first.head);
    const forward = await rewindSession(at.db, { ...own(first.session), why: null, to: second.head.slice(0, 12) });
    expect(forward).toMatchObject({ kind: 'rewound', at: second.head });
    const told = (await journal(at.db, first.session)).filter(({ kind }) => kind === 'session.rewound');
    expect(told).toEqual([
      {
        kind: 'session.rewound',
        layer: 'driver',
        from: second.head,
        to: first.head,
        head: first.head,
        effects: 0,
        by: 'ann',
        why: 'wrong way',
      },
      {
        kind: 'session.rewound',
        layer: 'driver',
        from: first.head,
        to: second.head,
        head: second.head,
        effects: 0,
        by: 'ann',
        why: null,
      },
    ]);
  });

  test('the next turn starts there, and a message of the branch that was left is still a place to go to', async () => {
    const first = await turnWith(undefined);
    const second = await nextTurnWith(first.session);
    await rewindSession(at.db, { ...own(first.session), why: null, to: first.head });
    const third = await nextTurnWith(first.session);
    expect(third.base).toBe(first.head);
    expect(await rewindSession(at.db, { ...own(first.session), why: null, to: second.head })).toMatchObject({
      at: second.head,
    });
  });

  test('to the start: the chain is empty, and the next turn begins it anew', async () => {
    const first = await turnWith(undefined);
    const root = rootHash('default', first.session);
    expect(await rewindSession(at.db, { ...own(first.session), why: null, to: 'start' })).toMatchObject({ at: root });
    expect(await textsOf(first.session)).toEqual([]);
    expect((await nextTurnWith(first.session)).base).toBe(root);
  });

  // The world was not rewound: a model that does not know that does it all again.
  test('the model is told of calls behind that point, by what the ledger knows of each', async () => {
    const first = await turnWith(undefined);
    const second = await nextTurnWith(first.session, 'once', 'once', 'idempotent', 'once', 'none', 'keyed');
    const [done, unknown, failed, absent, reader, intended] = second.calls as [
      string,
      string,
      string,
      string,
      string,
      string,
    ];
    await setState(done, 'succeeded');
    await setState(unknown, 'started');
    await setState(failed, 'failed');
    await setState(absent, 'settled_absent');
    await setState(intended, 'intended');
    expect(reader).toBeTruthy();
    const rewound = await rewindSession(at.db, { ...own(first.session), why: null, to: first.head });
    expect(rewound).toMatchObject({ kind: 'rewound', at: first.head, effects: 3 });
    const chain = await textsOf(first.session);
    expect(chain).toHaveLength(2);
    expect(chain[1]?.split('\n').slice(1)).toEqual([
      '- shell {}: it took effect',
      '- shell {}: whether it took effect is not known',
      '- shell {}: it failed, and may have had a part of its effect',
    ]);
    expect(chain[1]).toMatch(/^reminder The conversation was taken back to this point; the world was not\./);
    // Forward again: they are on the chain, so nobody is told.
    expect(await rewindSession(at.db, { ...own(first.session), why: null, to: second.head })).toMatchObject({
      head: second.head,
      effects: 0,
    });
  });

  test('is refused while a turn is open, and moves nothing', async () => {
    const first = await turnWith(undefined);
    await send(at.db, first.session, 'prompt');
    const open = await seedTurn(at.db, first.session);
    const wish = { ...own(first.session), why: null, to: 'start' };
    expect(await rewindSession(at.db, wish)).toEqual({ kind: 'busy', turn: open.turn });
    expect((await rowOf(first.session)).head).toBe(first.head);
  });

  test.each([
    ['a message of another session', async () => (await turnWith(undefined)).head],
    ['a hash that names nothing', () => Promise.resolve('0'.repeat(64))],
    ['too few digits', async () => (await turnWith(undefined)).head.slice(0, 7)],
    ['no hash at all', () => Promise.resolve('%')],
  ])('%s is none of its messages', async (_name, named) => {
    const first = await turnWith(undefined);
    expect(await rewindSession(at.db, { ...own(first.session), why: null, to: await named() })).toEqual({
      kind: 'unknown_message',
    });
  });

  test('another tenant’s session is unknown', async () => {
    const first = await turnWith(undefined);
    const theirs = { ...own(first.session), tenant: 'other' };
    expect(await rewindSession(at.db, { ...theirs, why: null, to: 'start' })).toEqual({ kind: 'unknown' });
    expect(await forkSession(at.db, theirs)).toEqual({ kind: 'unknown' });
    expect(await renameSession(at.db, { ...theirs, title: 'x' })).toBe(false);
    expect(await archiveSession(at.db, { ...theirs, archived: true, why: null })).toEqual({ kind: 'unknown' });
  });
});

describe('a fork', () => {
  test('shares the past, and from then on each goes its own way', async () => {
    const first = await turnWith(undefined);
    const forked = await forkSession(at.db, { ...own(first.session), title: 'another way' });
    if (forked.kind !== 'forked') throw new Error(forked.kind);
    expect(forked).toMatchObject({ at: first.head, head: first.head, effects: 0, isNew: true });
    const [source, fork] = [await rowOf(first.session), await rowOf(forked.session)];
    expect(fork).toMatchObject({
      tenant: 'default',
      stream: fork.id,
      agent: source.agent,
      head: first.head,
      title: 'another way',
      workspacePath: source.workspacePath,
      workspaceQueue: source.workspaceQueue,
      forkedFrom: source.id,
      forkedAt: first.head,
      state: 'open',
    });
    expect(await journal(at.db, fork.id)).toEqual([
      {
        kind: 'session.forked',
        layer: 'driver',
        source: source.id,
        at: first.head,
        head: first.head,
        effects: 0,
        by: 'ann',
      },
    ]);
    const [mine, theirs] = [await nextTurnWith(fork.id), await nextTurnWith(source.id)];
    expect(mine.base).toBe(first.head);
    expect(theirs.head).not.toBe(mine.head);
    expect(await textsOf(fork.id)).toHaveLength(2);
    // The branch of the one is no place of the other.
    expect(await rewindSession(at.db, { ...own(fork.id), why: null, to: theirs.head })).toEqual({
      kind: 'unknown_message',
    });
  });

  test('at an earlier message, while the other one works: told of what was done behind it', async () => {
    const first = await turnWith(undefined);
    const second = await nextTurnWith(first.session, 'once');
    await setState(second.calls[0]!, 'succeeded');
    await send(at.db, first.session, 'prompt');
    await seedTurn(at.db, first.session);
    const forked = await forkSession(at.db, { ...own(first.session), at: first.head });
    expect(forked).toMatchObject({ kind: 'forked', at: first.head, effects: 1 });
    if (forked.kind !== 'forked') throw new Error(forked.kind);
    expect((await textsOf(forked.session))[1]).toMatch(
      /^reminder This conversation was forked here[^]*\n- shell \{\}: it took effect$/,
    );
    // A fork of the fork, before that reminder, hears of the same call through its line of descent.
    expect(await forkSession(at.db, { ...own(forked.session), at: first.head })).toMatchObject({ effects: 1 });
  });

  // No turn of its own holds on to where it was taken.
  test('that no turn has moved finds back to its past after a rewind to its start', async () => {
    const first = await turnWith(undefined);
    const second = await nextTurnWith(first.session);
    const forked = await forkSession(at.db, own(first.session));
    if (forked.kind !== 'forked') throw new Error(forked.kind);
    const back = (to: string) => rewindSession(at.db, { ...own(forked.session), why: null, to });
    await back('start');
    expect(await textsOf(forked.session)).toEqual([]);
    expect(await back(first.head)).toMatchObject({ kind: 'rewound', at: first.head });
    expect(await back(second.head.slice(0, 12))).toMatchObject({ kind: 'rewound', at: second.head });
    expect(await textsOf(forked.session)).toHaveLength(2);
  });

  test('tried again without a message is the same fork, though the other one has gone on', async () => {
    const first = await turnWith(undefined);
    const wish = { ...own(first.session), id: 'f1' };
    const forked = await forkSession(at.db, wish);
    await nextTurnWith(first.session);
    expect(await forkSession(at.db, wish)).toEqual({ ...forked, isNew: false });
  });

  test('at the start has a chain of its own', async () => {
    const first = await turnWith(undefined);
    const forked = await forkSession(at.db, { ...own(first.session), at: 'start' });
    if (forked.kind !== 'forked') throw new Error(forked.kind);
    expect(forked.head).toBe(rootHash('default', forked.session));
  });

  test('the same id again is the same fork; with another message it is a conflict', async () => {
    const first = await turnWith(undefined);
    const wish = { ...own(first.session), id: 'f1' };
    const [a, b] = await Promise.all([forkSession(at.db, wish), forkSession(at.db, wish)]);
    if (a.kind !== 'forked' || b.kind !== 'forked') throw new Error(`${a.kind} ${b.kind}`);
    expect(b.session).toBe(a.session);
    expect(a.isNew).toBe(!b.isNew);
    expect(await forkSession(at.db, { ...wish, at: 'start' })).toEqual({ kind: 'conflict', session: a.session });
    expect(await at.db.$count(session, eq(session.forkedFrom, first.session))).toBe(1);
  });
});

test('renamed: another title, who, and no word of it in the event', async () => {
  const { session: of } = await seedJob(at.db, { ticket: 'T-1' });
  expect(await renameSession(at.db, { ...own(of), title: 'T-2' })).toBe(true);
  expect(await renameSession(at.db, { ...own(of), title: 'T-2' })).toBe(true);
  expect((await rowOf(of)).title).toBe('T-2');
  expect((await journal(at.db, of)).slice(1)).toEqual([{ kind: 'session.renamed', layer: 'driver', by: 'ann' }]);
});

/** Ends a turn over whatever it asked for. */
async function endOpen(on: SeededTurn): Promise<void> {
  const { head } = await turnRow(at.db, on);
  const chain = await loadChain(at.db, new ChainCache(), head);
  await end(at.db, on, COMPLETED, { chain, owed: chain.length > 0 ? [{ ...RESULT, ordinal: 0 }] : [] });
}

describe('the archive', () => {
  const put = (of: string, archived: boolean) => archiveSession(at.db, { ...own(of), archived, why: null });
  const more = (of: string, key = id('in')) =>
    storeInput(at.db, { id: key, session: of, kind: 'prompt', text: 'more', sender: null });

  test('takes nothing new, tells what it has known, and can be left', async () => {
    const first = await turnWith(undefined);
    const known = id('in');
    expect(await more(first.session, known)).toBe('accepted');
    await at.db.update(input).set({ status: 'consumed' }).where(eq(input.id, known));
    expect(await put(first.session, true)).toEqual({ kind: 'done', changed: true });
    expect(await put(first.session, true)).toEqual({ kind: 'done', changed: false });
    expect([await more(first.session), await more(first.session, known)]).toEqual(['archived', 'known']);
    expect(await next(at.db, first.session)).toEqual({ kind: 'idle' });
    expect(await forkSession(at.db, own(first.session))).toMatchObject({ kind: 'forked' });
    expect(await put(first.session, false)).toEqual({ kind: 'done', changed: true });
    expect(await more(first.session)).toBe('accepted');
    const told = (await journal(at.db, first.session)).filter(({ kind }) => kind === 'session.archived');
    expect(told).toMatchObject([
      { archived: true, by: 'ann' },
      { archived: false, by: 'ann' },
    ]);
  });

  // Every accepted message reaches an outcome: none may be shut in.
  test('is closed to a session that works, and to one in which somebody’s word waits', async () => {
    const { session: of } = await seedJob(at.db);
    expect(await put(of, true)).toEqual({ kind: 'waiting', inputs: 1 });
    const open = await seedTurn(at.db, of);
    expect(await put(of, true)).toEqual({ kind: 'busy', turn: open.turn });
    expect((await rowOf(of)).state).toBe('open');
  });

  // Their ends are inputs, which an archived session would never hear.
  test('is closed to a session whose sub-agents run, in either mode', async () => {
    const on = await seedTurn(at.db);
    const [child] = await seedAgents(at.db, on, 'background');
    await endOpen(on);
    expect(await put(on.session, true)).toEqual({ kind: 'busy', turn: `${child}/1` });
    await at.db.update(subAgent).set({ endedAt: new Date() }).where(eq(subAgent.session, child!));
    expect(await put(on.session, true)).toEqual({ kind: 'done', changed: true });
  });

  // Trap: it ends with its first turn, so what comes in afterwards would wait for ever.
  test('is never left by a sub-agent that has ended, and that takes nothing', async () => {
    const on = await seedTurn(at.db);
    const [child] = await seedAgents(at.db, on, 'background');
    const below = await seedTurn(at.db, child);
    expect(await more(child!)).toBe('accepted');
    await endOpen(below);
    expect(await at.db.select().from(input).where(eq(input.session, child!)).orderBy(input.seq)).toMatchObject([
      { kind: 'prompt', status: 'consumed' },
      { kind: 'prompt', status: 'withdrawn', droppedWhy: 'The sub-agent has ended.' },
    ]);
    expect((await rowOf(child!)).state).toBe('archived');
    expect(await put(child!, true)).toEqual({ kind: 'done', changed: false });
    expect(await put(child!, false)).toEqual({ kind: 'agent_ended' });
    expect(await more(child!)).toBe('agent_ended');
    expect(await closedBy(at.db, child!)).toBe('agent_ended');
    // Nor does one that somebody has let out of the archive before.
    await at.db.update(session).set({ state: 'open' }).where(eq(session.id, child!));
    expect(await more(child!)).toBe('agent_ended');
  });
});
