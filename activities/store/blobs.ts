import { and, eq } from 'drizzle-orm';
import type { Db } from './database.ts';
import { blob } from './schema.ts';

/** Kept output by its hash; null for one that is another tenant's or not there, which look the same. */
export async function readBlob(db: Db, tenant: string, hash: string): Promise<Buffer | null> {
  const [row] = await db
    .select({ data: blob.data })
    .from(blob)
    .where(and(eq(blob.hash, hash), eq(blob.tenant, tenant)));
  return row?.data ?? null;
}
