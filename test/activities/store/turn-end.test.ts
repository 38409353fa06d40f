import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { storeCancel } from '../../../activities/store/cancels.ts';
import { closeSample, openSample } from '../../../activities/store/samples.ts';
import { cancel, outbox, session } from '../../../activities/store/schema.ts';
import { ChainCache, loadChain } from '../../../activities/store/transcript.ts';
import { lockOpenTurn } from '../../../activities/store/fence.ts';
import { HeadMoved } from '../../../activities/store/turn-end.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { asked, CANCELLED, COMPLETED, end, join, row } from './ending.ts';
import { NO_USAGE, type Usage } from '../../../workflows/core/sample-outcome.ts';
import { closing, id, journal, kinds, type SeededTurn, seedTurn, USAGE } from './seed.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
});
afterAll(() => at.close());

const ENDED = { name: 'FenceRefused', code: 'turn.already_ended' };
const sessionHead = async (on: SeededTurn) =>
  (await at.db.select().from(session).where(eq(session.id, on.session)))[0]!.head;

describe('the end of a turn', () => {
  test('is one row, one event, one outbox row, and moves the session’s head', async () => {
    const on = await seedTurn(at.db);
    const head = await join(at.db, on, on.input);
    await end(at.db, on, COMPLETED);
    expect(await row(at.db, on)).toMatchObject({
      head,
      endReason: 'COMPLETED',
      endDetail: 'final_answer',
      endDecidedBy: 'model',
      endSignal: { name: 'model_stop' },
      endPhase: 'ending',
      endStep: 3,
      endUsage: NO_USAGE,
      endBy: null,
      endWhy: null,
      recordedBy: 'turn',
      endedAt: expect.any(Date),
    });
    expect(await sessionHead(on)).toBe(head);
    expect((await journal(at.db, on.session)).at(-1)).toEqual({
      kind: 'turn.ended',
      layer: 'turn',
      reason: 'COMPLETED',
      detail: 'final_answer',
      decidedBy: 'model',
      signal: 'model_stop',
      evidence: { name: 'model_stop' },
      phase: 'ending',
      step: 3,
      usage: NO_USAGE,
      by: null,
      why: null,
      recordedBy: 'turn',
      head,
    });
    expect(
      await at.db
        .select({ event: outbox.event, body: outbox.body })
        .from(outbox)
        .where(eq(outbox.receiver, `session:${on.session}`)),
    ).toEqual([{ event: `ended/${on.turn}`, body: { turn: on.turn } }]);
  });

  test('is the first of those that race; the others learn that it has ended', async () => {
    const on = await seedTurn(at.db);
    const tries = await Promise.allSettled(
      Array.from({ length: 10 }, (_, n) => end(at.db, on, n % 2 ? COMPLETED : CANCELLED, { step: n })),
    );
    const refused = tries.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []));
    expect(refused).toHaveLength(9);
    for (const reason of refused) expect(reason).toMatchObject(ENDED);
    expect((await kinds(at.db, on.session)).filter((kind) => kind === 'turn.ended')).toHaveLength(1);
    expect((await row(at.db, on)).endStep).toBe(tries.findIndex((each) => each.status === 'fulfilled'));
  });

  test('stands against recovery, which finds nothing to lock', async () => {
    const on = await seedTurn(at.db);
    expect(await at.db.transaction((tx) => lockOpenTurn(tx, on.turn))).toMatchObject({
      id: on.turn,
      session: on.session,
      generation: 0,
    });
    await end(at.db, on, COMPLETED);
    expect(await at.db.transaction((tx) => lockOpenTurn(tx, on.turn))).toBeNull();
  });

  test('takes what the transcript is still owed, and is rolled back whole if the head moved', async () => {
    const on = await seedTurn(at.db);
    const seen = await loadChain(at.db, new ChainCache(), await join(at.db, on, on.input));
    const moved = await join(at.db, on, on.input);
    const owed = [{ kind: 'interruption', text: 'cut', turn: on.turn }] as const;
    await expect(end(at.db, on, CANCELLED, { chain: seen, owed })).rejects.toThrow(new HeadMoved(moved));
    expect((await row(at.db, on)).endedAt).toBeNull();
    await end(at.db, on, CANCELLED, { chain: await loadChain(at.db, new ChainCache(), moved), owed });
    const chain = await loadChain(at.db, new ChainCache(), await sessionHead(on));
    expect(chain.map((link) => [link.depth, link.body.kind])).toEqual([
      [1, 'user'],
      [1, 'user'],
      [2, 'interruption'],
    ]);
  });

  test('keeps a head that somebody moved meanwhile, and says so', async () => {
    const on = await seedTurn(at.db);
    const head = await join(at.db, on, on.input);
    await at.db.update(session).set({ head: 'rewound' }).where(eq(session.id, on.session));
    await end(at.db, on, COMPLETED);
    expect(await sessionHead(on)).toBe('rewound');
    expect((await journal(at.db, on.session)).slice(-2)).toMatchObject([
      { kind: 'head.kept', head },
      { kind: 'turn.ended', head },
    ]);
  });

  // The identity and the reason of a terminate are whatever somebody typed.
  test('can be written whatever its author wrote', async () => {
    const on = await seedTurn(at.db);
    await end(at.db, on, COMPLETED, { author: { by: 'a\0nn', why: '\uD800' } });
    expect(await row(at.db, on)).toMatchObject({ endBy: 'a\uFFFDnn', endWhy: '\uFFFD' });
  });
});

describe('cancels at the end', () => {
  const answers = async (on: SeededTurn) =>
    (await at.db.select().from(cancel).where(eq(cancel.turn, on.turn)).orderBy(cancel.seq)).map(
      (each) => `${each.by} ${each.answer}`,
    );

  test('the first is the signal and its author the author; the later ones are second', async () => {
    const on = await seedTurn(at.db);
    const first = asked(on);
    await storeCancel(at.db, first);
    await storeCancel(at.db, asked(on, { by: 'bob', detail: 'scheduler_cancel', decidedBy: 'scheduler' }));
    await end(at.db, on, CANCELLED, { author: { by: 'what the engine says', why: null } });
    expect(await answers(on)).toEqual(['ann took', 'bob second']);
    expect(await row(at.db, on)).toMatchObject({
      endDetail: 'user_cancel',
      endDecidedBy: 'user',
      endSignal: { name: 'cancel_request', id: first.id },
      endPhase: 'tools',
      endBy: 'ann',
      endWhy: 'enough',
    });
    const said = (await journal(at.db, on.session)).flatMap((event) =>
      event.kind === 'cancel.answered' ? [event.answer] : [],
    );
    expect(said).toEqual(['took', 'second']);
  });

  test('the first decides the detail too', async () => {
    const on = await seedTurn(at.db);
    await storeCancel(at.db, asked(on, { by: 'cron', detail: 'scheduler_cancel', decidedBy: 'scheduler' }));
    await end(at.db, on, CANCELLED);
    expect(await row(at.db, on)).toMatchObject({
      endReason: 'ABORTED',
      endDetail: 'scheduler_cancel',
      endDecidedBy: 'scheduler',
      endBy: 'cron',
    });
  });

  test('that came too late for the end are told so', async () => {
    const on = await seedTurn(at.db);
    await storeCancel(at.db, asked(on));
    await end(at.db, on, COMPLETED);
    expect(await answers(on)).toEqual(['ann already_ended']);
    expect(await row(at.db, on)).toMatchObject({ endReason: 'COMPLETED', endBy: null });
  });

  test('of the engine alone have the engine’s author and no row', async () => {
    const on = await seedTurn(at.db);
    await end(at.db, on, CANCELLED, { author: { by: 'cli@host', why: null } });
    expect(await row(at.db, on)).toMatchObject({
      endDetail: 'user_cancel',
      endBy: 'cli@host',
      endSignal: { name: 'cancel_request' },
    });
  });

  // A cancel is either seen by the end or refused: never stored and left without an answer.
  test('that race with the end are answered or refused, each of them', async () => {
    const on = await seedTurn(at.db);
    const stored = Promise.all(Array.from({ length: 8 }, (_, n) => storeCancel(at.db, asked(on, { by: `p${n}` }))));
    await end(at.db, on, CANCELLED);
    const accepted = (await stored).filter((answer) => answer === 'stored').length;
    const given = await answers(on);
    expect(given).toHaveLength(accepted);
    expect(given.every((each) => / (took|second)$/.test(each))).toBe(true);
  });
});

describe('the usage of an end', () => {
  const request = { model: 'm', outputCapTokens: 100 };

  async function spend(on: SeededTurn, worstMicroUsd: number | null, used: Usage | null): Promise<void> {
    const one = { sample: id(), attempt: id('att') };
    const head = (await row(at.db, on)).head;
    const at0 = { fence: on.fence, session: on.session, step: 0, base: head, links: [], joined: [], events: [] };
    await openSample(at.db, { ...at0, ...one, request: { ...request, worstMicroUsd } });
    if (used) await closeSample(at.db, closing({ ...on, head }, { ...one, usage: used, text: id() }));
  }

  test('is the sum of all its requests, whatever its reason', async () => {
    const on = await seedTurn(at.db);
    await spend(on, 500, USAGE);
    await spend(on, 500, USAGE);
    await end(at.db, on, CANCELLED);
    const twice = { inputTokens: 140, cachedTokens: 40, outputTokens: 18, reasoningTokens: 8 };
    expect((await row(at.db, on)).endUsage).toEqual({ ...twice, complete: true, microUsd: 158, heldMicroUsd: 0 });
  });

  // Trap: a request that nobody closed looks as if it had cost nothing.
  test('counts a request that is still open as the worst case, and one that was told in part as the rest of it', async () => {
    const on = await seedTurn(at.db);
    await spend(on, 500, { ...USAGE, complete: false });
    await spend(on, 500, null);
    await end(at.db, on, COMPLETED);
    expect((await row(at.db, on)).endUsage).toEqual({ ...USAGE, complete: false, heldMicroUsd: 921 });
  });

  test('has no cost where a request had no price', async () => {
    const on = await seedTurn(at.db);
    await spend(on, null, { ...USAGE, microUsd: null });
    await end(at.db, on, COMPLETED);
    expect((await row(at.db, on)).endUsage).toEqual({ ...USAGE, microUsd: null });
  });
});
