import { eq } from 'drizzle-orm';
import type { Db } from './database.ts';
import { session, turn } from './schema.ts';

/** What never changes about a turn. */
export interface TurnOwner {
  readonly id: string;
  readonly session: string;
  readonly stream: string;
  readonly tenant: string;
  readonly workspacePath: string;
  /** Task queue of the workers that reach it. */
  readonly workspaceQueue: string;
  /** Hash of the pinned agent. */
  readonly agent: string;
  /** Hash of what its answer has to fit. */
  readonly outputSchema: string | null;
}

const known = new Map<string, TurnOwner>();
const KEPT = 10_000;

export async function ownerOf(db: Db, id: string): Promise<TurnOwner> {
  const before = known.get(id);
  if (before) return before;
  const [row] = await db
    .select({
      id: turn.id,
      session: turn.session,
      stream: session.stream,
      tenant: session.tenant,
      workspacePath: session.workspacePath,
      workspaceQueue: session.workspaceQueue,
      agent: turn.agent,
      outputSchema: turn.outputSchema,
    })
    .from(turn)
    .innerJoin(session, eq(session.id, turn.session))
    .where(eq(turn.id, id));
  if (!row) throw new Error('a turn is not in the store');
  if (known.size >= KEPT) known.clear();
  known.set(id, row);
  return row;
}
