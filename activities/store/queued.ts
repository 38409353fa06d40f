import { and, inArray, type SQL, sql } from 'drizzle-orm';
import { BACKGROUND } from '../../workflows/core/inputs.ts';
import { input } from './schema.ts';

/** Nobody edits it now: a lock that is over holds nothing. */
export const isUnlocked: SQL = sql`coalesce(${input.editLockUntil} < clock_timestamp(), true)`;

/**
 * A background result behind a turn that a person stopped: it starts none, and joins the next one. What a person
 * answered is no background result.
 */
export const waitsForNextTurn: SQL = sql`coalesce(${and(
  inArray(input.kind, [...BACKGROUND]),
  sql`not exists (select from pawl.approval a where a.input = ${input.id})`,
  sql`(select t.end_reason in ('ABORTED', 'INTERRUPTED') and t.end_decided_by = 'user' from pawl.turn t
    where t.session = ${input.session} order by t.n desc limit 1)`,
)}, false)`;
