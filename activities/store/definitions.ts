import { eq } from 'drizzle-orm';
import type { Db, Tx } from './database.ts';
import { contentHash } from './hash.ts';
import { agent, outputSchema, type OutputSchema, type StoredAgent, type StoredTool, toolList } from './schema.ts';

const agents = new Map<string, StoredAgent>();
const toolLists = new Map<string, readonly StoredTool[]>();

/** A pinned agent; immutable by its hash, so this process reads it once. */
export async function agentOf(db: Db | Tx, hash: string): Promise<StoredAgent> {
  const known = agents.get(hash);
  if (known) return known;
  const [row] = await db.select().from(agent).where(eq(agent.hash, hash));
  if (!row) throw new Error('a pinned agent is not in the store');
  agents.set(hash, row.definition);
  return row.definition;
}

/** The agent with the model that plays it now. */
export function playedBy(agent: StoredAgent, model: 'primary' | 'fallback'): StoredAgent {
  return model === 'fallback' ? { ...agent, ...agent.fallback } : agent;
}

/** A pinned tool list; immutable by its hash. */
export async function toolsOf(db: Db, hash: string): Promise<readonly StoredTool[]> {
  const known = toolLists.get(hash);
  if (known) return known;
  const [row] = await db.select().from(toolList).where(eq(toolList.hash, hash));
  if (!row) throw new Error('a pinned tool list is not in the store');
  toolLists.set(hash, row.tools);
  return row.tools;
}

const schemas = new Map<string, OutputSchema>();

/** What a turn's answer has to fit; immutable by its hash. */
export async function schemaOf(db: Db | Tx, hash: string): Promise<OutputSchema> {
  const known = schemas.get(hash);
  if (known) return known;
  const [row] = await db.select().from(outputSchema).where(eq(outputSchema.hash, hash));
  if (!row) throw new Error('a pinned output schema is not in the store');
  schemas.set(hash, row.schema);
  return row.schema;
}

export async function storeSchema(tx: Tx, schema: OutputSchema): Promise<string> {
  const hash = contentHash(schema);
  await tx.insert(outputSchema).values({ hash, schema }).onConflictDoNothing();
  return hash;
}
