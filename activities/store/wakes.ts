import { eq, sql } from 'drizzle-orm';
import type { Db, Tx } from './database.ts';
import { sha256, storable } from './hash.ts';
import { wake, type WakeOutcome, type WakeSource } from './schema.ts';

export interface NewWake {
  readonly goal: string;
  /** The sender's own id: twice delivered is once woken. */
  readonly key: string;
  readonly source: WakeSource;
  readonly event: string | null;
  readonly by: string | null;
  /** Set where it is not to be heard at all. */
  readonly settled?: { readonly outcome: WakeOutcome; readonly why: string };
}

export interface StoredWake {
  readonly id: string;
  readonly isNew: boolean;
  /** It came a moment ago, and who brought it then is telling the goal; the sweeper repeats what gets lost. */
  readonly isBeingTold: boolean;
  /** Null: it waits to be heard. */
  readonly outcome: WakeOutcome | null;
  readonly why: string | null;
}

export async function storeWake(db: Db | Tx, request: NewWake): Promise<StoredWake> {
  const { goal, key, source, event, by, settled } = request;
  const id = `wk_${sha256('wake', goal, key).slice(0, 32)}`;
  const rows = await db
    .insert(wake)
    .values({
      id,
      goal,
      key: storable(key),
      source,
      event: event === null ? null : storable(event),
      by: by === null ? null : storable(by),
      ...(settled ? { ...settled, settledAt: new Date() } : {}),
    })
    .onConflictDoNothing()
    .returning({ id: wake.id });
  const [row] = await db
    .select({
      outcome: wake.outcome,
      why: wake.why,
      isYoung: sql<boolean>`${wake.createdAt} > clock_timestamp() - interval '1 second'`,
    })
    .from(wake)
    .where(eq(wake.id, id));
  const isNew = rows.length > 0;
  return {
    id,
    isNew,
    isBeingTold: !isNew && row?.isYoung === true,
    outcome: row?.outcome ?? null,
    why: row?.why ?? null,
  };
}

/** Events by name that have woken a goal since its newest round, with what was reported of them. */
export async function wakingEvents(
  db: Db,
  goal: string,
): Promise<readonly { readonly name: string; readonly text: string }[]> {
  const { rows } = await db.execute<{ name: string; text: string }>(sql`
    select w.event as name, coalesce(e.body, '') as text
    from pawl.wake w join pawl.goal g on g.id = w.goal
    left join pawl.outside_event e on w.source = 'event' and e.session = g.session and w.key = 'event/' || e.id
    where w.goal = ${goal} and w.outcome = 'fired' and w.event is not null
      and w.settled_at > coalesce((select max(created_at) from pawl.goal_round where goal = ${goal}), '-infinity')
    order by w.created_at, w.id`);
  return rows;
}
