import { and, eq, isNull, sql } from 'drizzle-orm';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Deps } from '../deps.ts';
import { closeForgotten } from '../store/answers.ts';
import { untoldAnswers } from '../store/approvals.ts';
import { turnWorkflowId } from '../../workflows/messages.ts';
import { cancel, turn } from '../store/schema.ts';
import { recoverTurn } from './recover-turn.ts';
import { settleLate } from './settle-late.ts';

export interface Swept {
  readonly told: number;
  readonly recovered: number;
}

const AT_ONCE = 500;

/**
 * Finds what a lost notice or a killed process left behind: waiting sessions are told, cancels are passed on,
 * waits that nobody answers are closed, dead turns get their end, effects that nobody could tell about are asked for again.
 */
export async function sweep(deps: Deps): Promise<Swept> {
  const forgotten = await closeForgotten(deps.database.db, POLICY.waits.keptMs);
  const waiting = [...new Set([...forgotten, ...(await waitingSessions(deps))])];
  for (const session of waiting) await deps.engine.look(session);
  for (const id of await cancelsUnheard(deps)) await deps.engine.requestCancel(turnWorkflowId(id));
  for (const { turn: id, approval } of await untoldAnswers(deps.database.db, POLICY.recovery.redeliverAfterMs)) {
    await deps.engine.answerWaits(turnWorkflowId(id), approval);
  }
  const open = await deps.database.db.select({ id: turn.id }).from(turn).where(isNull(turn.endedAt)).limit(AT_ONCE);
  let recovered = 0;
  for (const { id } of open) {
    if (await isStamped(deps, id)) recovered += 1;
  }
  await settleLate(deps);
  deps.reporter.wake();
  return { told: waiting.length, recovered };
}

/** One turn that can't be recovered now must not keep the others waiting. */
async function isStamped(deps: Deps, id: string): Promise<boolean> {
  try {
    return (await recoverTurn(deps, id)) === 'stamped';
  } catch (error) {
    deps.log.warn(
      { turn: id, error: error instanceof Error ? error.name : 'unknown' },
      'a turn could not be recovered',
    );
    return false;
  }
}

/** Open turns that somebody wanted cancelled: whoever stored the request may have died before the engine knew. */
async function cancelsUnheard(deps: Deps): Promise<string[]> {
  const rows = await deps.database.db
    .selectDistinct({ turn: cancel.turn })
    .from(cancel)
    .innerJoin(turn, eq(turn.id, cancel.turn))
    .where(
      and(isNull(turn.endedAt), isNull(cancel.answer), sql`${cancel.createdAt} < clock_timestamp() - ${settled()}`),
    );
  return rows.map((row) => row.turn);
}

/** How old a row must be before its notice counts as lost. */
function settled() {
  return sql`make_interval(secs => ${POLICY.recovery.redeliverAfterMs / 1_000})`;
}

/** Sessions with something queued or unacknowledged for 5 s and nothing that runs, or with an input not passed on. */
async function waitingSessions(deps: Deps): Promise<string[]> {
  const after = settled();
  const { rows } = await deps.database.db.execute<{ session: string }>(sql`
    select distinct waiting.session from (
      select session from pawl.input
      where status = 'queued' and created_at < clock_timestamp() - ${after}
        and (edit_lock_until is null or edit_lock_until < clock_timestamp())
        and (dispatched_at is null or not exists (
          select 1 from pawl.turn where turn.session = input.session and turn.ended_at is null))
        -- Background results start no turn after a person stopped the last one: no look can move them.
        and not (kind in ('call_back', 'agent_end') and coalesce((
          select end_reason = 'ABORTED' and end_decided_by = 'user' from pawl.turn
          where turn.session = input.session order by n desc limit 1), false))
      union all
      select substr(receiver, 9) from pawl.outbox
      where acknowledged_at is null and receiver like 'session:%' and created_at < clock_timestamp() - ${after}
    ) waiting limit ${AT_ONCE}`);
  return rows.map((row) => row.session);
}
