import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { repairSession } from '../../../activities/session/repair-session.ts';
import { effectKey } from '../../../activities/store/hash.ts';
import { call, effect, message, session } from '../../../activities/store/schema.ts';
import { forkSession } from '../../../activities/store/session-life.ts';
import { ChainCache, chainOn, loadChain, writeLinks } from '../../../activities/store/transcript.ts';
import { NO_RESULT_TEXT } from '../../../activities/model/repair-pairs.ts';
import type { Message } from '../../../workflows/core/transcript.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { COMPLETED, end, row as turnRow } from '../store/ending.ts';
import { journal, next, oneToken, said, seedCalls, seedJob, seedTurn, send, user } from '../store/seed.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
});
afterAll(() => at.close());

const headOf = async (of: string) =>
  (await at.db.select({ head: session.head }).from(session).where(eq(session.id, of)))[0]!.head;
const repair = (of: string, head: string) =>
  repairSession({ database: at, chains: new ChainCache() }, { session: of, head });
const chainOf = async (of: string) =>
  (await loadChain(at.db, new ChainCache(), await headOf(of))).map(({ body }) => body);
const result = (ordinal: number): Message => ({
  kind: 'tool_result',
  ordinal,
  callId: `c${ordinal}`,
  tool: 't',
  text: 'ok',
  isError: false,
  blob: null,
});

/** A session whose first prompt waits, with these messages on its chain. */
async function sessionWith(...bodies: readonly Message[]) {
  const { session: of } = await seedJob(at.db);
  const links = chainOn({ hash: await headOf(of), depth: 0 }, bodies, oneToken);
  await at.db.transaction((tx) => writeLinks(tx, links));
  const head = links.at(-1)?.hash ?? (await headOf(of));
  await at.db.update(session).set({ head }).where(eq(session.id, of));
  return { of, head, links };
}

const CUT = { ...said('cut', ['a', 'b']), cut: true } as Message;

test.each<[string, readonly Message[], readonly number[]]>([
  ['no calls', [user('x'), said('hi')], []],
  ['nothing at all', [], []],
  ['a call without a result', [user('x'), said('', ['a'])], [0]],
  ['one of three answered', [user('x'), said('', ['a', 'b', 'c']), result(1)], [0, 2]],
  ['all answered', [said('', ['a', 'b']), result(0), result(1), user('y')], []],
  ['one answered twice, one not at all', [said('', ['a', 'b']), result(0), result(0)], [1]],
  ['an open call with a message behind it', [said('', ['a']), user('y')], [0]],
  // Calls of a reply that was cut never ran: nothing is owed to them.
  ['a reply that was cut', [user('x'), CUT], []],
  ['an open call in an earlier reply only', [said('', ['a']), user('y'), said('hi')], []],
])(
  '%s: each open call of the newest reply gets one result, told once, before a turn opens',
  async (_, bodies, open) => {
    const { of, head } = await sessionWith(...bodies);
    if (open.length > 0) {
      expect(await next(at.db, of)).toEqual({ kind: 'repair', head });
      await repair(of, head);
      // A look that died between repair and opening repairs again: nothing is left to do.
      await repair(of, head);
      const added = (await chainOf(of)).slice(bodies.length);
      expect(added).toMatchObject(
        open.map((ordinal) => ({
          kind: 'tool_result',
          ordinal,
          callId: `c${ordinal}`,
          isError: true,
          text: NO_RESULT_TEXT,
        })),
      );
      expect((await journal(at.db, of)).filter(({ kind }) => kind === 'chain.repaired')).toEqual([
        { kind: 'chain.repaired', layer: 'driver', from: head, head: await headOf(of), results: open.length },
      ]);
    }
    expect(await next(at.db, of)).toMatchObject({ kind: 'start', turn: { head: await headOf(of) } });
  },
);

test('a fork into the middle of a batch: what is known of a call is its result there too', async () => {
  const on = await seedTurn(at.db);
  const calls = await seedCalls(at.db, on, 'once', 'once', 'once');
  const reply = (await turnRow(at.db, on)).head;
  expect(calls[0]).toBe(effectKey(reply, 0));
  await at.db.update(call).set({ status: 'ok', result: 'number 7' }).where(eq(call.key, calls[0]!));
  await at.db.update(effect).set({ state: 'started' }).where(eq(effect.key, calls[1]!));
  const forked = await end(at.db, on, COMPLETED).then(() =>
    forkSession(at.db, { tenant: 'default', session: on.session, at: reply, by: 'ann' }),
  );
  if (forked.kind !== 'forked') throw new Error(forked.kind);
  await send(at.db, forked.session, 'prompt');
  expect(await next(at.db, forked.session)).toEqual({ kind: 'repair', head: reply });
  await repair(forked.session, reply);
  const texts = (await chainOf(forked.session)).slice(1).map((body) => body.text);
  expect(texts).toEqual([
    'number 7',
    expect.stringMatching(/^Interrupted while it ran: whether it took effect is not known/),
    expect.stringMatching(/^Not started/),
  ]);
  expect(await headOf(on.session)).toBe(reply);
});

// Trap: what can't be repaired is looked at for ever, and the session never gets a turn, nor an end that says why.
test('a chain that can’t be read is left alone', async () => {
  const { of, head, links } = await sessionWith(user('x'), user('y'), said('', ['a']));
  await at.db.delete(message).where(eq(message.hash, links[0]!.hash));
  await repair(of, head);
  expect(await headOf(of)).toBe(head);
  expect((await journal(at.db, of)).map(({ kind }) => kind)).toEqual(['job.submitted']);
});
