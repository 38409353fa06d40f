import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readCall, startEffect } from '../../../activities/store/ledger.ts';
import { effect, turn } from '../../../activities/store/schema.ts';
import { finishUndo, giveUpLostUndos, startUndo } from '../../../activities/store/undo.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { atOnce, id, identity, journal, type SeededTurn, seedCalls, seedTurn } from './seed.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
});
afterAll(() => at.close());

interface Cut {
  readonly on: SeededTurn;
  readonly key: string;
}

async function cut(): Promise<Cut> {
  const on = await seedTurn(at.db);
  const [key = ''] = await seedCalls(at.db, on, 'once');
  await startEffect(at.db, { fence: on.fence, key, from: null, details: null, mayInPlan: false }, identity(id('att')));
  return { on, key };
}

const begin = ({ on, key }: Cut, attempt: string, mayRepeat = false) =>
  startUndo(at.db, { fence: on.fence, key, attempt, mayRepeat });
const finish = ({ on, key }: Cut, attempt: string, as: 'undone' | 'failed' | 'unknown') =>
  finishUndo(at.db, { key, session: on.session, attempt }, as, null);
const undoOf = async ({ key }: Cut) => (await readCall(at.db, key))?.effect?.undo;
const told = async ({ on }: Cut) =>
  (await journal(at.db, on.session)).flatMap((event) =>
    event.kind === 'effect.undoing' ? [event.attempt] : event.kind === 'effect.undone' ? [event.as] : [],
  );

describe('an undo', () => {
  it('is begun once, also when two begin at the same time', async () => {
    const on = await cut();
    const hold = sql`select 1 from pawl.effect where key = ${on.key} for update`;
    const began = await atOnce(at.db, hold, [() => begin(on, 'a'), () => begin(on, 'b')]);
    expect(began.toSorted()).toEqual(['started', 'unknown']);
    expect(await told(on)).toHaveLength(2);
  });

  it('is not begun again once it is over', async () => {
    const on = await cut();
    expect(await begin(on, 'a')).toBe('started');
    await finish(on, 'a', 'undone');
    expect([await begin(on, 'b'), await begin(on, 'c', true)]).toEqual(['undone', 'undone']);
    expect(await told(on)).toEqual(['a', 'undone']);
  });

  it('that was lost is begun anew where it may be repeated; the lost one tells nothing any more', async () => {
    const on = await cut();
    await begin(on, 'a', true);
    expect(await begin(on, 'b', true)).toBe('started');
    await finish(on, 'a', 'failed');
    expect(await undoOf(on)).toBe('started');
    await finish(on, 'b', 'undone');
    expect(await told(on)).toEqual(['a', 'b', 'undone']);
  });

  // The truth is taken at any time: an attempt that was given up for lost may have lived.
  it('that was given up for lost and comes back is believed', async () => {
    const on = await cut();
    await begin(on, 'a');
    expect(await begin(on, 'b')).toBe('unknown');
    await finish(on, 'a', 'undone');
    expect([await undoOf(on), await told(on)]).toEqual(['undone', ['a', 'unknown', 'undone']]);
  });

  it('does not begin after the end of its turn', async () => {
    const on = await cut();
    await at.db.update(turn).set({ endedAt: sql`now()`, endReason: 'ABORTED' }).where(eq(turn.id, on.on.turn));
    await expect(begin(on, 'a')).rejects.toThrow('turn.already_ended');
  });

  it('whose attempt was lost with its turn is nobody’s: unknown, when the time for cleaning up is over', async () => {
    const on = await cut();
    await begin(on, 'a');
    await giveUpLostUndos(at.db, 9);
    await at.db.update(turn).set({ endedAt: sql`now()`, endReason: 'ABORTED' }).where(eq(turn.id, on.on.turn));
    await giveUpLostUndos(at.db, 9);
    expect(await undoOf(on)).toBe('started');
    await at.db.update(effect).set({ undoStartedAt: sql`now() - interval '31 seconds'` }).where(eq(effect.key, on.key));
    await giveUpLostUndos(at.db, 9);
    expect([await undoOf(on), await told(on)]).toEqual(['unknown', ['a', 'unknown']]);
  });
});
