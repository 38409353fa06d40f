import { and, asc, eq, inArray, isNull, sql } from 'drizzle-orm';
import { type InputKind, JOINS_RUNNING_TURN } from '../../workflows/core/inputs.ts';
import type { Tx } from './database.ts';
import { input } from './schema.ts';

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
