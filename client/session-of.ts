import { sql } from 'drizzle-orm';
import type { Db } from '../activities/store/database.ts';

/** The session that an id names, or that of the job it names. Null: the tenant has neither. */
export async function sessionOf(db: Db, { tenant, of }: { tenant: string; of: string }): Promise<string | null> {
  // No text with a NUL can be asked for.
  if (of.includes('\0')) return null;
  const { rows } = await db.execute<{ id: string }>(sql`
    select s.id from pawl.session s where s.tenant = ${tenant}
      and (s.id = ${of} or s.id = (select j.session from pawl.job j where j.id = ${of} and j.tenant = ${tenant}))`);
  return rows[0]?.id ?? null;
}
