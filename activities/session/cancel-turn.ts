import { and, eq, isNull } from 'drizzle-orm';
import { sessionWorkflowId, turnWorkflowId } from '../../workflows/messages.ts';
import { stopAgentsOf } from '../agents/cascade.ts';
import type { Deps } from '../deps.ts';
import { storeCancel } from '../store/cancels.ts';
import { turn } from '../store/schema.ts';

const WHY = 'The workflow of the session was cancelled.';

/**
 * A cancel of the session workflow means its open turn: the row first, with whoever asked the engine, then the
 * engine. Returns that turn, or nothing where none is running: then it means the sub-agents in the background.
 */
export async function cancelTurnOfSession(
  deps: Deps,
  request: { readonly session: string; readonly run: string },
): Promise<string | null> {
  const { db } = deps.database;
  const [open] = await db
    .select({ id: turn.id })
    .from(turn)
    .where(and(eq(turn.session, request.session), isNull(turn.endedAt)));
  const by = await deps.engine.cancelAuthor(sessionWorkflowId(request.session), request.run);
  if (!open) {
    await stopAgentsOf(deps, request.session, { by: by ?? 'unknown', why: WHY, decidedBy: 'user' });
    return null;
  }
  await storeCancel(db, {
    turn: open.id,
    id: `session/${request.run}`,
    by: by ?? 'unknown',
    why: WHY,
    decidedBy: 'user',
    detail: 'user_cancel',
  });
  return (await deps.engine.requestCancel(turnWorkflowId(open.id))) ? open.id : null;
}

/** Whether a turn has its end; a session that is being cancelled waits for this. */
export async function hasEnded(deps: Deps, id: string): Promise<boolean> {
  const [row] = await deps.database.db.select({ endedAt: turn.endedAt }).from(turn).where(eq(turn.id, id));
  return row === undefined || row.endedAt !== null;
}
