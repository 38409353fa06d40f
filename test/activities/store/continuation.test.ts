import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { continuationId } from '../../../activities/store/continuation.ts';
import { storeCancel } from '../../../activities/store/cancels.ts';
import { startEffect } from '../../../activities/store/ledger.ts';
import { input, type StoredAgent } from '../../../activities/store/schema.ts';
import { continuationText } from '../../../activities/turn/continuation-text.ts';
import type { End } from '../../../workflows/core/ends.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { asked, CANCELLED, COMPLETED, end, row } from './ending.ts';
import {
  AGENT,
  id,
  identity,
  journal,
  next,
  newJob,
  seedCalls,
  seedJob,
  seedTurn,
  type SeededTurn,
  send,
} from './seed.ts';

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
const TERMINATED: End = { ...LOST, detail: 'terminated', decidedBy: 'user' };

const endWith = (on: SeededTurn, how: End = LOST, directive: string | null = 'Go on.') =>
  end(at.db, on, how, { directive, recordedBy: 'recovery' });
const queued = (on: SeededTurn) => at.db.select().from(input).where(eq(input.continues, on.turn));
const goesOn = async (on: SeededTurn) =>
  (await journal(at.db, on.session)).filter((event) => event.kind === 'job.continues');

describe('an end that a machine made', () => {
  test('queues one directive in its own transaction, and says so right behind the end', async () => {
    const on = await seedTurn(at.db);
    await endWith(on);
    expect(await queued(on)).toMatchObject([
      {
        id: continuationId(on.turn),
        kind: 'directive',
        class: 'wake_up',
        status: 'queued',
        body: 'Go on.',
        sender: null,
      },
    ]);
    expect((await journal(at.db, on.session)).slice(-2)).toMatchObject([
      { kind: 'turn.ended', detail: 'lost' },
      { kind: 'job.continues', layer: 'driver', input: continuationId(on.turn), n: 1, of: 3 },
    ]);
  });

  // Trap: recovery runs on every worker, and its activities again and again.
  test('queues one, however many write that end at once', async () => {
    const on = await seedTurn(at.db);
    const tries = await Promise.allSettled(Array.from({ length: 8 }, () => endWith(on)));
    expect(tries.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await queued(on)).toHaveLength(1);
    expect(await goesOn(on)).toHaveLength(1);
  });

  test('is continued three times a job; the fourth is what the end says', async () => {
    const { session, input: origin } = await seedJob(at.db);
    for (const n of [1, 2, 3, 4]) {
      const on = await seedTurn(at.db, session);
      expect(await row(at.db, on)).toMatchObject({ n, origin });
      await endWith(on);
      expect(await queued(on)).toHaveLength(n < 4 ? 1 : 0);
    }
    expect(await next(at.db, session)).toEqual({ kind: 'idle' });
    // Another job of the session has its own three.
    await send(at.db, session, 'prompt');
    const other = await seedTurn(at.db, session);
    await endWith(other);
    expect(await goesOn(other)).toMatchObject([{ n: 1 }, { n: 2 }, { n: 3 }, { n: 1 }]);
  });

  test('goes on behind what people wait for, and keeps what the answer has to fit', async () => {
    const outputSchema = { type: 'object', properties: {}, additionalProperties: false };
    const { session, input: origin } = await seedJob(at.db, newJob({ outputSchema }));
    const first = await seedTurn(at.db, session);
    await endWith(first);
    const prompt = await send(at.db, session, 'prompt');
    const person = await seedTurn(at.db, session);
    expect(await row(at.db, person)).toMatchObject({ input: prompt, origin: prompt, outputSchema: null });
    await end(at.db, person, COMPLETED);
    const on = await seedTurn(at.db, session);
    const { outputSchema: pinned } = await row(at.db, first);
    expect(pinned).not.toBeNull();
    expect(await row(at.db, on)).toMatchObject({ input: continuationId(first.turn), origin, outputSchema: pinned });
  });

  test('is not continued where somebody had wanted it to end', async () => {
    const on = await seedTurn(at.db);
    await storeCancel(at.db, asked(on));
    await endWith(on);
    expect(await queued(on)).toEqual([]);
    expect(await next(at.db, on.session)).toEqual({ kind: 'idle' });
  });

  test.each([
    ['a person’s terminate', TERMINATED],
    ['a cancel', CANCELLED],
    ['a final answer', COMPLETED],
  ])('is none: %s', async (_name, how) => {
    const on = await seedTurn(at.db);
    expect(await continuationText(at.db, on.turn, how)).toBeNull();
    await endWith(on, how);
    expect(await queued(on)).toEqual([]);
  });
});

describe('what the model is told', () => {
  test('what happened, and to check before it repeats', async () => {
    const on = await seedTurn(at.db);
    expect(await continuationText(at.db, on.turn, LOST)).toBe(
      'The turn before this one was cut off: its process was lost. Nobody stopped it on purpose. The task is the same: go on where it stopped.\n' +
        'Its last text may be cut short. Check the state of things before you repeat anything.',
    );
    expect(await continuationText(at.db, on.turn, { ...LOST, detail: 'timed_out' })).toContain(
      'was cut off: its time in the workflow engine was over.',
    );
    expect(await continuationText(at.db, on.turn, { ...LOST, detail: 'workspace_lost' })).toContain(
      'was cut off: no machine that has the files of the workspace took its call in time.',
    );
  });

  test('which calls may have taken effect: those that began and did not come back', async () => {
    const agent: StoredAgent = { ...AGENT, tools: ['shell'] };
    const { session } = await seedJob(at.db, { agent });
    const on = await seedTurn(at.db, session);
    const [begun] = await seedCalls(at.db, on, 'once', 'once', 'none');
    const started = { key: begun!, fence: on.fence, from: null, details: null, mayInPlan: false };
    await startEffect(at.db, started, identity(id('att')));
    const lines = (await continuationText(at.db, on.turn, LOST))?.split('\n').slice(1);
    expect(lines).toEqual([
      'Its last text may be cut short. Check the state of things before you repeat anything, above all what these calls did, of which it is not known whether they took effect:',
      '- shell {}',
    ]);
  });
});
