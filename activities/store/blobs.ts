import { and, eq } from 'drizzle-orm';
import { POLICY } from '../../workflows/core/policy.ts';
import { fitText } from '../tools/text.ts';
import type { Db, Tx } from './database.ts';
import { sha256 } from './hash.ts';
import { blob } from './schema.ts';

/** Kept output by its hash; null for one that is another tenant's or not there, which look the same. */
export async function readBlob(db: Db, tenant: string, hash: string): Promise<Buffer | null> {
  const [row] = await db
    .select({ data: blob.data })
    .from(blob)
    .where(and(eq(blob.hash, hash), eq(blob.tenant, tenant)));
  return row?.data ?? null;
}

/** A text as long as a result may be, and where the whole of it is kept; null where nothing was left out. */
export interface Fitted {
  readonly text: string;
  readonly blob: string | null;
}

/** Keeps the whole of a text that is too long for a result. `chars`: how much of it is shown. */
export async function fitAndKeep(
  tx: Tx,
  tenant: string,
  text: string,
  chars: number = POLICY.tools.resultChars,
): Promise<Fitted> {
  if (text.length <= chars) return { text, blob: null };
  const data = Buffer.from(text);
  const hash = sha256(tenant, data);
  await tx.insert(blob).values({ hash, tenant, size: data.length, data }).onConflictDoNothing();
  return { text: fitText(text, chars), blob: hash };
}
