import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cutBy } from '../../../activities/store/cut-by.ts';
import { closeLostAttempts, closeSample, openSample, UNKNOWN_USAGE } from '../../../activities/store/samples.ts';
import { streamEnded } from '../../../activities/store/stream-ended.ts';
import { call, cancel, commit, effect, input, turn, usage } from '../../../activities/store/schema.ts';
import { NO_USAGE } from '../../../workflows/core/sample-outcome.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import {
  atOnce,
  closing,
  id,
  journal,
  kinds,
  linkOn,
  newCall,
  open,
  replyOutcome,
  said,
  seedTurn,
  send,
  TOKENS,
  USAGE,
  user,
} from './seed.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
});
afterAll(() => at.close());

const usageOf = async (attempt: string) => (await at.db.select().from(usage).where(eq(usage.attempt, attempt)))[0];
const headOf = async (turnId: string) => (await at.db.select().from(turn).where(eq(turn.id, turnId)))[0]?.head;

test('an open attempt counts as the worst case until it is closed, with what it used', async () => {
  const seeded = await seedTurn(at.db);
  const one = { sample: id(), attempt: id('att') };
  expect(await open(at.db, seeded, one)).toMatchObject({ kind: 'opened', lost: 0, lostUsage: NO_USAGE, plan: false });
  expect(await usageOf(one.attempt)).toMatchObject({
    outputCapTokens: 100,
    closedAt: null,
    complete: false,
    inputTokens: null,
  });
  const last = closing(seeded, one);
  expect(await closeSample(at.db, { ...last, events: [streamEnded(last, 'stop', null, 'h')] })).toEqual(last.outcome);
  expect(await usageOf(one.attempt)).toMatchObject({
    ...TOKENS,
    costMicroUsd: 79,
    outcome: 'reply',
    wasted: false,
    closedAt: expect.any(Date),
  });
  expect(await headOf(seeded.turn)).toBe(last.reply!.hash);
  expect(await kinds(at.db, seeded.session)).toEqual(['job.submitted', 'turn.opened', 'stream.ended']);
});

test('usage that was never told is stored as unknown, never as zero; a part that was told is kept', async () => {
  const seeded = await seedTurn(at.db);
  const untold = { sample: id(), attempt: id('att') };
  await open(at.db, seeded, untold);
  await closeSample(at.db, closing(seeded, { ...untold, usage: { ...UNKNOWN_USAGE, heldMicroUsd: 500 } }));
  expect(await usageOf(untold.attempt)).toMatchObject({
    complete: false,
    inputTokens: null,
    outputTokens: null,
    costMicroUsd: null,
    closedAt: expect.any(Date),
  });
  const partly = { sample: id(), attempt: id('att') };
  const on = { ...seeded, head: (await headOf(seeded.turn))! };
  await open(at.db, on, partly);
  await closeSample(at.db, closing(on, { ...partly, usage: { ...USAGE, complete: false, heldMicroUsd: 421 } }));
  expect(await usageOf(partly.attempt)).toMatchObject({ ...TOKENS, complete: false, costMicroUsd: 79 });
});

test('the end of a stream that was cut names who cancelled first; a message that could not wait is a user’s', async () => {
  const seeded = await seedTurn(at.db);
  const ended = async () => {
    const last = closing(seeded);
    const { event } = streamEnded(last, await cutBy(at.db, seeded.turn), null, null);
    return event.kind === 'stream.ended' && [event.reason, event.decidedBy, event.signal].join(' ');
  };
  // By the engine alone.
  expect(await ended()).toBe('cancelled user cancelled');
  const urgent = await send(at.db, seeded.session, 'send_now');
  await at.db.update(input).set({ status: 'forwarded', turn: seeded.turn }).where(eq(input.id, urgent));
  expect(await ended()).toBe('cancelled user message');
  for (const decidedBy of ['scheduler', 'user'] as const) {
    await at.db.insert(cancel).values({ id: id(), turn: seeded.turn, by: 'b', decidedBy, detail: 'scheduler_cancel' });
    expect(await ended()).toBe('cancelled scheduler cancelled');
  }
});

// The turn hears of a lost attempt once, with the outcome of the next one: attempts of the same bytes share a key.
test('what lost attempts may have cost is told to the attempt that follows, once', async () => {
  const seeded = await seedTurn(at.db);
  const sample = id();
  const openNext = async (attempt: string) => {
    const opened = await open(at.db, seeded, { sample, attempt });
    return opened.kind === 'opened' ? opened.lostUsage : opened.kind;
  };
  expect(await openNext(`${sample}/1`)).toEqual(NO_USAGE);
  expect(await openNext(`${sample}/2`)).toEqual({ ...UNKNOWN_USAGE, heldMicroUsd: 500 });
  expect(await openNext(`${sample}/3`)).toEqual({ ...UNKNOWN_USAGE, heldMicroUsd: 1_000 });
  const failure = { kind: 'stalled', head: seeded.head, usage: USAGE } as const;
  const told = { sample, attempt: `${sample}/3`, outcome: failure, isFinal: false, reply: null };
  await closeSample(at.db, closing(seeded, told));
  expect(await openNext(`${sample}/4`)).toEqual(NO_USAGE);
  expect(await openNext(`${sample}/5`)).toEqual({ ...UNKNOWN_USAGE, heldMicroUsd: 500 });
});

test('what a sample takes in is on the chain once, with its inputs', async () => {
  const seeded = await seedTurn(at.db);
  const link = linkOn(seeded.head, user('do it', seeded.input));
  const request = { model: 'm', outputCapTokens: 1, worstMicroUsd: null };
  const { fence, session, head: base } = seeded;
  const opening = { fence, session, step: 0, request, base, links: [link], events: [] };
  const joined = [{ input: seeded.input, message: link.hash }];
  await openSample(at.db, { ...opening, sample: id(), attempt: id('att'), joined });
  await openSample(at.db, { ...opening, sample: id(), attempt: id('att'), joined });
  expect(await headOf(seeded.turn)).toBe(link.hash);
  expect((await at.db.select().from(input).where(eq(input.id, seeded.input)))[0]?.message).toBe(link.hash);
});

// Trap: the reply of such a request could not be taken, and each try would be paid.
test('on a head that the turn has left nothing is opened, whether it would append or not', async () => {
  const seeded = await seedTurn(at.db);
  await closeSample(at.db, closing(seeded, { text: 'moved on' }));
  for (const links of [[], [linkOn(seeded.head, user('late'))]]) {
    const late = { sample: id(), attempt: id('att') };
    await expect(open(at.db, seeded, late, links)).rejects.toThrow('refused');
    expect(await usageOf(late.attempt)).toBeUndefined();
  }
  expect(
    await open(at.db, { ...seeded, head: (await headOf(seeded.turn))! }, { sample: id(), attempt: id('att') }),
  ).toMatchObject({
    kind: 'opened',
  });
});

// Two attempts of one activity were seen alive at once for 4 s.
test('of two closings under one key the first stands; the other gets its outcome and is marked wasted', async () => {
  const seeded = await seedTurn(at.db);
  const sample = id();
  const [won, lost] = [closing(seeded, { sample, text: 'one' }), closing(seeded, { sample, text: 'two' })];
  await open(at.db, seeded, { sample, attempt: won.attempt });
  await at.db.insert(usage).values({
    attempt: lost.attempt,
    sample,
    session: seeded.session,
    turn: seeded.turn,
    step: 0,
    model: 'm',
    outputCapTokens: 1,
  });
  expect(await closeSample(at.db, won)).toEqual(won.outcome);
  expect(await closeSample(at.db, lost)).toEqual(won.outcome);
  expect(await headOf(seeded.turn)).toBe(won.reply!.hash);
  expect(await usageOf(won.attempt)).toMatchObject({ wasted: false });
  expect(await usageOf(lost.attempt)).toMatchObject({
    ...TOKENS,
    costMicroUsd: 79,
    wasted: true,
    closedAt: expect.any(Date),
  });
  expect((await journal(at.db, seeded.session)).slice(2)).toMatchObject([
    { kind: 'stream.ended', attempt: lost.attempt, reason: 'discarded' },
    // What was shown of it is taken back.
    { kind: 'attempt.discarded', attempt: lost.attempt },
  ]);
});

test('eight closings at once under one key: one commit, one reply, all get the same outcome', async () => {
  const seeded = await seedTurn(at.db);
  const sample = id();
  const all = Array.from({ length: 8 }, (_, n) => {
    const reply = linkOn(seeded.head, said(`reply ${n}`, ['x']));
    return closing(seeded, {
      sample,
      reply,
      outcome: replyOutcome(reply.hash),
      calls: [newCall(reply.hash, 0, 'once')],
    });
  });
  const outcomes = await atOnce(
    at.db,
    sql`select from pawl.turn where id = ${seeded.turn} for update`,
    all.map((each) => () => closeSample(at.db, each)),
  );
  expect(new Set(outcomes.map((outcome) => outcome.head)).size).toBe(1);
  expect(await headOf(seeded.turn)).toBe(outcomes[0]!.head);
  expect(await at.db.$count(commit, eq(commit.key, sample))).toBe(1);
  expect(await at.db.select({ assistant: call.assistant }).from(call).where(eq(call.turn, seeded.turn))).toEqual([
    { assistant: outcomes[0]!.head },
  ]);
  expect(await at.db.$count(effect, eq(effect.turn, seeded.turn))).toBe(1);
});

test('attempt 2 finds what attempt 1 committed, and opens nothing', async () => {
  const seeded = await seedTurn(at.db);
  const first = closing(seeded);
  await open(at.db, seeded, first);
  await closeSample(at.db, first);
  expect(await open(at.db, seeded, { sample: first.sample, attempt: 'att_second' })).toEqual({
    kind: 'answered',
    outcome: first.outcome,
  });
  expect(await usageOf('att_second')).toBeUndefined();
});

test('a failure is not kept under the key: the next attempt makes its own request', async () => {
  const seeded = await seedTurn(at.db);
  const failure = { kind: 'stalled', head: seeded.head, usage: USAGE } as const;
  const first = closing(seeded, { outcome: failure, isFinal: false, reply: null });
  await open(at.db, seeded, first);
  expect(await closeSample(at.db, first)).toEqual(failure);
  expect(await usageOf(first.attempt)).toMatchObject({ outcome: 'stalled', wasted: true });
  expect(await open(at.db, seeded, { sample: first.sample, attempt: id('att') })).toMatchObject({
    kind: 'opened',
    lost: 0,
    plan: false,
  });
});

test('an attempt that died is closed by the next one, with its ends, and counted', async () => {
  const seeded = await seedTurn(at.db);
  const sample = id();
  for (let n = 0; n < 9; n += 1)
    expect(await open(at.db, seeded, { sample, attempt: `${sample}/${n}` })).toMatchObject({
      kind: 'opened',
      lost: n,
      plan: false,
    });
  expect(await open(at.db, seeded, { sample, attempt: `${sample}/9` })).toMatchObject({
    kind: 'opened',
    lost: 9,
    plan: false,
  });
  expect(await open(at.db, seeded, { sample, attempt: `${sample}/10` })).toEqual({ kind: 'too_many_lost', lost: 10 });
  const dead = (await journal(at.db, seeded.session)).filter(
    (event) => 'attempt' in event && event.attempt === `${sample}/3`,
  );
  expect(dead.map((event) => (event.kind === 'stream.ended' ? `${event.kind} ${event.reason}` : event.kind))).toEqual([
    'attempt.resumed',
    'attempt.lost',
    'stream.ended lost',
    'attempt.discarded',
  ]);
  expect(await closeLostAttempts(at.db, { turn: seeded.turn, session: seeded.session, sample, mine: null })).toBe(10);
});

test('calls go to the store with their effects; one that is answered already acts on nothing', async () => {
  const seeded = await seedTurn(at.db);
  const reply = linkOn(seeded.head, said('', ['a', 'b', 'c']));
  const odd = { providerCallId: 'id\0', arguments: '{"a":"\0\uD800"}', tool: 'x\0' };
  const calls = [
    newCall(reply.hash, 0, 'none'),
    newCall(reply.hash, 1, 'once'),
    newCall(reply.hash, 2, 'once', {
      ...odd,
      answer: { status: 'error', text: 'no such tool \0', note: 'unknown_tool' },
    }),
  ];
  await closeSample(at.db, closing(seeded, { reply, calls, outcome: replyOutcome(reply.hash) }));
  const rows = await at.db.select().from(call).where(eq(call.assistant, reply.hash)).orderBy(call.ordinal);
  expect(rows.map((row) => [row.key, row.status, row.result])).toEqual([
    [calls[0]!.key, null, null],
    [calls[1]!.key, null, null],
    [calls[2]!.key, 'error', 'no such tool \uFFFD'],
  ]);
  expect(rows[2]).toMatchObject({ providerCallId: 'id\uFFFD', arguments: '{"a":"\uFFFD\uFFFD"}', tool: 'x\uFFFD' });
  expect(
    await at.db.select({ key: effect.key, state: effect.state }).from(effect).where(eq(effect.turn, seeded.turn)),
  ).toEqual([{ key: calls[1]!.key, state: 'intended' }]);
});
