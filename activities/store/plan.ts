import { and, eq, ne, type SQL, sql } from 'drizzle-orm';
import type { Db, Tx } from './database.ts';
import { type NewEvent, recordEvents } from './events.ts';
import { storable } from './hash.ts';
import { newId } from './ids.ts';
import { session } from './schema.ts';

export interface SetPlan {
  readonly tenant: string;
  readonly session: string;
  readonly plan: boolean;
  /** Who wants it so. */
  readonly by: string;
}

/** Sets or takes away a session's plan flag, and that of its running sub-agents; calls that begin after it heed it. `unknown`: no such session. */
export async function setPlan(
  db: Db,
  { tenant, session: id, plan, by }: SetPlan,
): Promise<'set' | 'as_it_was' | 'unknown'> {
  return await db.transaction(async (tx) => {
    const own = and(eq(session.id, storable(id)), eq(session.tenant, tenant));
    await setBelow(tx, own, plan);
    const changed = await tx
      .update(session)
      .set({ plan })
      .where(and(own, ne(session.plan, plan)))
      .returning({ id: session.id });
    if (changed.length > 0) {
      await recordEvents(tx, id, [planEvent(plan, by)]);
      return 'set';
    }
    return (await tx.$count(session, own)) > 0 ? 'as_it_was' : 'unknown';
  });
}

/** Rows of sub-agents before that of their session, as their own ends take them. */
async function setBelow(tx: Tx, own: SQL | undefined, plan: boolean): Promise<void> {
  await tx.execute(sql`
    with recursive below as (
      select a.session from pawl.sub_agent a join pawl.session on session.id = a.parent
      where ${own} and a.ended_at is null
      union all
      select a.session from below b join pawl.sub_agent a on a.parent = b.session and a.ended_at is null
    ) update pawl.session s set plan = ${plan} from below where s.id = below.session`);
}

/** Each change is one of its own. */
export function planEvent(plan: boolean, by: string | null): NewEvent {
  return { key: `plan/${newId('pln')}`, turn: null, event: { kind: 'plan.set', layer: 'driver', plan, by } };
}
