import { and, asc, desc, eq, gt, isNull, sql } from 'drizzle-orm';
import type { Db } from './database.ts';
import { approval, call, effect, turn } from './schema.ts';

/** A question or an event that the session still waits for. */
export interface OpenWait {
  readonly id: string;
  readonly tool: string;
  readonly subject: string | null;
}

/** A call that may or may not have taken effect. */
export interface UnknownEffect {
  readonly tool: string;
  readonly arguments: string;
}

const AT_MOST = 50;

/** What of a session is not settled, and so must not be forgotten. */
export async function openFacts(
  db: Db,
  session: string,
): Promise<{ readonly waits: readonly OpenWait[]; readonly unknown: readonly UnknownEffect[] }> {
  const [waits, unknown] = await Promise.all([
    db
      .select({ id: approval.id, asked: approval.asked })
      .from(approval)
      .innerJoin(turn, eq(turn.id, approval.turn))
      .where(and(eq(turn.session, session), isNull(approval.answer), gt(approval.expiresAt, sql`clock_timestamp()`)))
      .orderBy(asc(approval.createdAt))
      .limit(AT_MOST),
    db
      .select({ tool: effect.tool, arguments: call.arguments })
      .from(effect)
      .innerJoin(call, eq(call.key, effect.key))
      .innerJoin(turn, eq(turn.id, effect.turn))
      .where(and(eq(turn.session, session), eq(effect.state, 'unknown')))
      .orderBy(desc(effect.createdAt))
      .limit(AT_MOST),
  ]);
  return { waits: waits.map(({ id, asked }) => ({ id, tool: asked.tool, subject: asked.subject })), unknown };
}
