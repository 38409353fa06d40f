import { and, eq, inArray, isNotNull, isNull, sql } from 'drizzle-orm';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Db, Tx } from './database.ts';
import { type NewEvent, recordEvents } from './events.ts';
import { type Fence, lockTurn } from './fence.ts';
import type { EffectRow } from './ledger.ts';
import { storable } from './hash.ts';
import { effect, turn, type UndoState } from './schema.ts';

/** Its turn was cancelled before anybody knew what became of it. */
export async function markCut(db: Db, key: string): Promise<void> {
  await db
    .update(effect)
    .set({ cutAt: sql`clock_timestamp()` })
    .where(and(eq(effect.key, key), isNull(effect.cutAt), inArray(effect.state, ['started', 'unknown'])));
}

/**
 * Marks the undo of an effect as begun by this attempt, at most once; one that an earlier attempt began and did
 * not finish is begun anew only if that `mayRepeat`. Returns what stands: `started` means that it is this attempt's.
 */
export async function startUndo(
  db: Db,
  at: { readonly fence: Fence; readonly key: string; readonly attempt: string; readonly mayRepeat: boolean },
): Promise<UndoState> {
  const { key, attempt } = at;
  return await db.transaction(async (tx) => {
    const owner = await lockTurn(tx, at.fence);
    const [row] = await tx.select().from(effect).where(eq(effect.key, key)).for('no key update');
    if (!row) throw new Error('an effect vanished from the ledger');
    if (row.undo !== null && row.undo !== 'started') return row.undo;
    if (row.undo === 'started' && !at.mayRepeat) {
      await keep(tx, row, 'unknown');
      await recordEvents(tx, owner.session, [undone(row, 'unknown', null)]);
      return 'unknown';
    }
    await tx
      .update(effect)
      .set({ undo: 'started', undoAttempt: attempt, undoStartedAt: sql`clock_timestamp()` })
      .where(eq(effect.key, key));
    await recordEvents(tx, owner.session, [
      {
        key: `undoing/${attempt}`,
        turn: owner.id,
        event: { kind: 'effect.undoing', layer: 'batch', key, attempt },
      },
    ]);
    return 'started';
  });
}

/** What became of an undo, as the attempt that holds it tells: recorded at any time, also after the turn's end. */
export async function finishUndo(
  db: Db,
  at: { readonly key: string; readonly session: string; readonly attempt: string },
  as: 'undone' | 'failed' | 'unknown',
  note: string | null,
): Promise<void> {
  await db.transaction(async (tx) => {
    const [row] = await tx
      .select()
      .from(effect)
      .where(
        and(eq(effect.key, at.key), eq(effect.undoAttempt, at.attempt), inArray(effect.undo, ['started', 'unknown'])),
      )
      .for('no key update');
    if (!row) return;
    await keep(tx, row, as);
    await recordEvents(tx, at.session, [undone(row, as, note)]);
  });
}

async function keep(tx: Tx, { key }: EffectRow, as: UndoState): Promise<void> {
  await tx.update(effect).set({ undo: as, undoSettledAt: sql`clock_timestamp()` }).where(eq(effect.key, key));
}

function undone(row: EffectRow, as: 'undone' | 'failed' | 'unknown', note: string | null): NewEvent {
  const attempt = row.undoAttempt ?? '';
  return {
    key: `undone/${attempt}/${as}`,
    turn: row.turn,
    event: {
      kind: 'effect.undone',
      layer: 'batch',
      key: row.key,
      attempt,
      as,
      note: note === null ? null : storable(note),
    },
  };
}

/** Undos whose attempt was lost, and whose turn has its end: nobody repeats them, and nobody knows. */
export async function giveUpLostUndos(db: Db, atMost: number): Promise<void> {
  const rows = await db
    .select({ effect, session: turn.session })
    .from(effect)
    .innerJoin(turn, eq(turn.id, effect.turn))
    .where(
      and(
        eq(effect.undo, 'started'),
        isNotNull(turn.endedAt),
        sql`${effect.undoStartedAt} < clock_timestamp() - make_interval(secs => ${POLICY.cleanup.deadlineMs / 1_000})`,
      ),
    )
    .limit(atMost);
  for (const { effect: row, session } of rows) {
    const at = { key: row.key, session, attempt: row.undoAttempt ?? '' };
    await finishUndo(db, at, 'unknown', null);
  }
}
