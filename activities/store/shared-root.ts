import { randomUUID } from 'node:crypto';
import { eq } from 'drizzle-orm';
import type { Db } from './database.ts';
import { sharedRoot } from './schema.ts';

/**
 * The mark of a task queue's workspace root. Whoever asks first makes it, and has `put` write it down; nobody
 * learns of it before that is done, nor if it fails.
 */
export async function markOfRoot(db: Db, taskQueue: string, put: (mark: string) => void): Promise<string> {
  return await db.transaction(async (tx) => {
    const [made] = await tx
      .insert(sharedRoot)
      .values({ taskQueue, mark: randomUUID() })
      .onConflictDoNothing()
      .returning();
    if (made) {
      put(made.mark);
      return made.mark;
    }
    const [known] = await tx.select().from(sharedRoot).where(eq(sharedRoot.taskQueue, taskQueue));
    return known?.mark ?? '';
  });
}
