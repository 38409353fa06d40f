import { sql } from 'drizzle-orm';
import type { Decider } from '../../workflows/core/ends.ts';
import type { Db } from './database.ts';

/** What cut a stream: a cancel of its turn, or a message that could not wait and that the turn has not taken in. */
export type CutBy =
  | { readonly kind: 'message' }
  /** The first one's decider; one that came from the engine alone is a user's. */
  | { readonly kind: 'cancel'; readonly decidedBy: Decider };

export async function cutBy(db: Db, turn: string): Promise<CutBy> {
  const { rows } = await db.execute<{ isMessage: boolean; decidedBy: Decider | null }>(sql`
    select exists (select from pawl.input where turn = ${turn} and kind = 'send_now' and status = 'forwarded' and message is null)
      as "isMessage", (select decided_by from pawl.cancel where turn = ${turn} order by seq limit 1) as "decidedBy"`);
  const { isMessage = false, decidedBy = null } = rows[0] ?? {};
  return isMessage && decidedBy === null ? { kind: 'message' } : { kind: 'cancel', decidedBy: decidedBy ?? 'user' };
}
