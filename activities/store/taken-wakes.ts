import { sql } from 'drizzle-orm';
import type { Db } from './database.ts';

/** Wakes of a goal that are not settled, and whose event a call of its session has taken meanwhile. */
export async function takenWakes(db: Db, goal: string): Promise<readonly string[]> {
  const { rows } = await db.execute<{ id: string }>(sql`
    select w.id from pawl.wake w join pawl.goal g on g.id = w.goal
    join pawl.outside_event e on e.session = g.session and w.key = 'event/' || e.id
    where w.goal = ${goal} and w.source = 'event' and w.outcome is null and e.waits > 0
    order by w.created_at, w.id`);
  return rows.map(({ id }) => id);
}
