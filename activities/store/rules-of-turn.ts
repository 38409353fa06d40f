import { eq } from 'drizzle-orm';
import type { TurnRules } from '../../workflows/core/turn-rules.ts';
import type { Tx } from './database.ts';
import { storeSchema } from './definitions.ts';
import { job, type session, type StoredAgent } from './schema.ts';

/** The job's own schema, else the agent's. */
export async function schemaFor(tx: Tx, origin: string, pinned: StoredAgent): Promise<string | null> {
  const [handedIn] = await tx.select({ schema: job.outputSchema }).from(job).where(eq(job.input, origin));
  if (handedIn?.schema) return handedIn.schema;
  return pinned.outputSchema ? await storeSchema(tx, pinned.outputSchema) : null;
}

/** What the agent, and whether there is a schema, make of a turn. */
export function rulesOf(
  pinned: StoredAgent,
  row: Pick<typeof session.$inferSelect, 'parent'>,
  hasSchema: boolean,
): TurnRules {
  return {
    role: row.parent === null ? 'agent' : 'sub_agent',
    fallback: pinned.fallback ? 'named' : 'none',
    schema: hasSchema ? 'asked' : 'none',
    todoGate: pinned.todoGate ? 'on' : 'off',
    tokenTarget: pinned.tokenTarget ?? null,
    contract: pinned.contract ?? null,
    ...(pinned.patience ? { patience: pinned.patience } : {}),
  };
}
