import { and, asc, eq, inArray, isNull, sql } from 'drizzle-orm';
import { type InputKind, JOINS_RUNNING_TURN } from '../../workflows/core/inputs.ts';
import type { Db, Tx } from './database.ts';
import { isUnlocked } from './queued.ts';
import { input, turn } from './schema.ts';

/**
 * What is bound to a turn and not in the transcript yet: a look that was repeated may have lost its answer,
 * and the turn takes each id only once.
 */
export async function joining(tx: Tx, turnId: string): Promise<readonly { id: string; kind: InputKind }[]> {
  return await tx
    .select({ id: input.id, kind: input.kind })
    .from(input)
    .where(
      and(
        eq(input.turn, turnId),
        eq(input.status, 'forwarded'),
        isNull(input.message),
        inArray(input.kind, [...JOINS_RUNNING_TURN]),
        sql`not ${isOfOpenWait}`,
        sql`not ${isHeldBack}`,
      ),
    )
    .orderBy(asc(input.seq));
}

/** The answer to a call that still waits becomes its result; as a message it would cut other waits short. */
const isOfOpenWait = sql`exists (
  select from pawl.approval a where a.input = ${input.id} and a.turn = ${input.turn} and a.settled_at is null)`;

/** Nor is the end of a sub-agent a message while a call waits for it, or for a person. */
const isHeldBack = sql`(${input.kind} = 'agent_end' and exists (
  select from pawl.call c where c.turn = ${input.turn} and c.status is null and c.tool in ('wait_agents', 'ask_user')))`;

/** Sessions whose open turn has not taken in something that was told of so long ago; at most so many of them. */
export async function unheardSessions(db: Db, afterMs: number, limit: number): Promise<string[]> {
  const rows = await db
    .select({ session: input.session })
    .from(input)
    .innerJoin(turn, and(eq(turn.session, input.session), isNull(turn.endedAt)))
    .where(
      and(
        sql`${input.status} in ('queued', 'forwarded')`,
        isNull(input.message),
        inArray(input.kind, [...JOINS_RUNNING_TURN]),
        sql`${input.dispatchedAt} < clock_timestamp() - make_interval(secs => ${afterMs / 1_000})`,
        isUnlocked,
        sql`not ${isOfOpenWait}`,
        sql`not ${isHeldBack}`,
      ),
    )
    .groupBy(input.session)
    // Most of them wait for the next safe point. However many do, one that is lost among them comes up in the end.
    .orderBy(sql`random()`)
    .limit(limit);
  return rows.map((row) => row.session);
}
