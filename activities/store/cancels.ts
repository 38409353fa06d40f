import { eq } from 'drizzle-orm';
import type { Decider, EndDetail } from '../../workflows/core/ends.ts';
import type { Db, Tx } from './database.ts';
import { type NewEvent, recordEvents } from './events.ts';
import { storableDeep } from './hash.ts';
import { cancel, turn } from './schema.ts';

export interface CancelRequest {
  readonly turn: string;
  /** The same id again is the same request. */
  readonly id: string;
  readonly by: string;
  readonly why: string | null;
  readonly decidedBy: Decider;
  readonly detail: EndDetail & ('user_cancel' | 'scheduler_cancel' | 'parent_cancelled');
}

/** Stores who wants a turn cancelled and why, before the engine is asked. `already_ended`: nothing to cancel. */
export async function storeCancel(
  db: Db,
  request: CancelRequest,
): Promise<'stored' | 'already_ended' | 'no_such_turn'> {
  return await db.transaction(async (tx) => {
    const [row] = await tx.select().from(turn).where(eq(turn.id, request.turn)).for('share');
    if (!row) return 'no_such_turn';
    if (row.endedAt) return 'already_ended';
    await recordEvents(tx, row.session, [await insertCancel(tx, request)]);
    return 'stored';
  });
}

/** Returns what to tell of it. */
export async function insertCancel(tx: Tx, request: CancelRequest): Promise<NewEvent> {
  await tx.insert(cancel).values(storableDeep(request)).onConflictDoNothing();
  return {
    key: `cancel/${request.id}`,
    turn: request.turn,
    event: { kind: 'cancel.requested', layer: 'turn', id: request.id, decidedBy: request.decidedBy },
  };
}
