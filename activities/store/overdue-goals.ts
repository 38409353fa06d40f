import { sql } from 'drizzle-orm';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Db } from './database.ts';

const { goalOverdueMs } = POLICY.recovery;

/**
 * Goals that should have gone on by themselves by now: their rest is over, or they are at work and for a while neither
 * they nor a turn of their session have done anything. Some live: between rounds, or while they are judged.
 */
export async function overdueGoals(db: Db, most: number): Promise<string[]> {
  const { rows } = await db.execute<{ id: string }>(sql`
    with clock as (select clock_timestamp() - make_interval(secs => ${goalOverdueMs / 1_000}) as late)
    select g.id from pawl.goal g, clock
    where not g.is_final and g.changed_at < late and case g.state->'status'->>'kind'
      when 'waiting' then to_timestamp((g.state->'status'->'awaited'->>'untilMs')::numeric / 1000) < late
      when 'paused' then to_timestamp((g.state->'status'->>'untilMs')::numeric / 1000) < late
      when 'active' then not exists (select from pawl.turn t
        where t.session = g.session and (t.ended_at is null or t.ended_at > late))
      else false end
    order by g.changed_at, g.id limit ${most}`);
  return rows.map((row) => row.id);
}
