import { sql } from 'drizzle-orm';
import type { Db } from '../store/database.ts';

/** What cut a stream: a cancel of its turn, or a message that could not wait and that the turn has not taken in. */
export type CutBy = 'cancel' | 'message';

export async function cutBy(db: Db, turn: string): Promise<CutBy> {
  const { rows } = await db.execute<{ isMessage: boolean }>(sql`
    select exists (select from pawl.input where turn = ${turn} and kind = 'send_now' and status = 'forwarded' and message is null)
      and not exists (select from pawl.cancel where turn = ${turn}) as "isMessage"`);
  return rows[0]?.isMessage === true ? 'message' : 'cancel';
}
