import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answerApproval } from '../../../activities/store/answers.ts';
import { openApprovals } from '../../../activities/store/approvals.ts';
import { startEffect } from '../../../activities/store/ledger.ts';
import { askAfterEnds } from '../../../activities/store/outcomes.ts';
import { effect, input, type OutcomeAnswer } from '../../../activities/store/schema.ts';
import { ChainCache, loadChain } from '../../../activities/store/transcript.ts';
import type { End } from '../../../workflows/core/ends.ts';
import type { Message } from '../../../workflows/core/transcript.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { end, row } from './ending.ts';
import { seedAgents } from './seed-agents.ts';
import { id, identity, seedCalls, seedTurn, type SeededTurn, send } from './seed.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
});
afterAll(() => at.close());

const LOST: End = {
  reason: 'INTERRUPTED',
  detail: 'lost',
  decidedBy: 'runtime',
  signal: { name: 'engine', event: 'unknown' },
  phase: 'cleanup',
};

/** A turn whose call may or may not have taken effect. */
async function unknownIn(on: SeededTurn): Promise<string> {
  const [key] = await seedCalls(at.db, on, 'once');
  await startEffect(
    at.db,
    { fence: on.fence, key: key!, from: null, details: null, mayInPlan: false },
    identity(id('att')),
  );
  await at.db.update(effect).set({ state: 'unknown' }).where(eq(effect.key, key!));
  return key!;
}

const RESULT = { kind: 'tool_result', ordinal: 0, callId: 'c0', tool: 'shell', isError: true, blob: null } as const;

/** As recovery ends it; `directive`: what the job goes on with by itself. */
async function endWith(on: SeededTurn, directive: string | null, detail: End['detail'] = 'lost'): Promise<void> {
  const chain = await loadChain(at.db, new ChainCache(), (await row(at.db, on)).head);
  const owed: Message[] = [{ ...RESULT, text: 'Nobody knows.' }];
  await end(at.db, on, { ...LOST, detail } as End, { chain, owed, directive, recordedBy: 'recovery' });
}

/** What a person is asked about it now. */
async function askedAbout(on: SeededTurn) {
  await askAfterEnds(at.db, 1_000);
  return (await openApprovals(at.db, 'default')).filter(({ turn }) => turn === on.turn);
}

const answer = (approval: string, said: OutcomeAnswer, own = id('in')) =>
  answerApproval(at.db, 'default', approval, {
    answer: said,
    by: 'ann',
    editedArguments: null,
    text: null,
    input: own,
  });
const stateOf = async (key: string) => (await at.db.select().from(effect).where(eq(effect.key, key)))[0]!.state;

describe('a call that nobody can tell of, after an end that a machine made', () => {
  test.each(['lost', 'timed_out', 'workspace_lost'] as const)(
    '%s: where the job has gone on as often as it may, a person is asked, and the answer takes it on',
    async (detail) => {
      const on = await seedTurn(at.db);
      const key = await unknownIn(on);
      await endWith(on, null, detail);
      const [asked] = await askedAbout(on);
      expect(asked).toMatchObject({ call: key, openUntil: null, asked: { kind: 'outcome', tool: 'shell' } });
      const own = id('in');
      expect(await answer(asked!.id, 'happened', own)).toEqual({ kind: 'late', session: on.session });
      expect(await stateOf(key)).toBe('settled_done');
      expect((await seedTurn(at.db, on.session)).inputs).toEqual([own]);
    },
  );

  // It is told that nobody knows, and looks itself: an answer would come into the middle of that.
  test('where it goes on by itself nobody is asked, but when a person takes that back', async () => {
    const on = await seedTurn(at.db);
    await unknownIn(on);
    await endWith(on, 'Go on.');
    expect(await askedAbout(on)).toEqual([]);
    await at.db.update(input).set({ status: 'withdrawn' }).where(eq(input.continues, on.turn));
    expect(await askedAbout(on)).toHaveLength(1);
  });

  test('once something else has begun the question is over', async () => {
    const on = await seedTurn(at.db);
    await unknownIn(on);
    await endWith(on, null);
    const [asked] = await askedAbout(on);
    await send(at.db, on.session, 'prompt');
    await seedTurn(at.db, on.session);
    expect(await askedAbout(on)).toEqual([]);
    expect(await answer(asked!.id, 'absent')).toEqual({ kind: 'stale', why: 'turn_ended' });
  });

  test('of a sub-agent: the ledger learns it, and nobody is told who hears nothing more', async () => {
    const on = await seedTurn(at.db);
    const [child] = await seedAgents(at.db, on, 'background');
    const below = await seedTurn(at.db, child);
    const key = await unknownIn(below);
    await endWith(below, 'Go on.');
    const [asked] = await askedAbout(below);
    expect(await answer(asked!.id, 'absent')).toEqual({ kind: 'late', session: child });
    expect(await stateOf(key)).toBe('settled_absent');
    expect(await at.db.select().from(input).where(eq(input.session, child!))).toMatchObject([{ kind: 'prompt' }]);
  });
});
