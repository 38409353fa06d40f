import { isNull, sql } from 'drizzle-orm';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Deps } from '../deps.ts';
import { turn } from '../store/schema.ts';
import { recoverTurn } from './recover-turn.ts';

export interface Swept {
  readonly told: number;
  readonly recovered: number;
}

const AT_ONCE = 500;

/** Finds what a lost notice or a killed workflow left behind: waiting sessions are told, dead turns get their end. */
export async function sweep(deps: Deps): Promise<Swept> {
  const waiting = await waitingSessions(deps);
  for (const session of waiting) await deps.engine.look(session);
  const open = await deps.database.db.select({ id: turn.id }).from(turn).where(isNull(turn.endedAt)).limit(AT_ONCE);
  let recovered = 0;
  for (const { id } of open) {
    if ((await recoverTurn(deps, id)) === 'stamped') recovered += 1;
  }
  return { told: waiting.length, recovered };
}

/** Sessions with something queued or unacknowledged for 5 s and nothing that runs, or with an input not passed on. */
async function waitingSessions(deps: Deps): Promise<string[]> {
  const after = sql`make_interval(secs => ${POLICY.recovery.redeliverAfterMs / 1_000})`;
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
