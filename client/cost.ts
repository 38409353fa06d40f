import { and, asc, eq, type SQL, sql } from 'drizzle-orm';
import type { Db } from '../activities/store/database.ts';
import { session, turn, usage } from '../activities/store/schema.ts';
import { usageSum } from '../activities/store/usage.ts';
import type { Usage } from '../workflows/core/sample-outcome.ts';
import { findJob } from './read-jobs.ts';

/** Sums over provider requests. Where not `complete`, tokens and cost are lower bounds. */
export interface UsageSum extends Usage {
  readonly requests: number;
  /** Requests whose usage is not known, or not yet. */
  readonly incomplete: number;
  /** Requests that brought nothing that was kept; they are paid for all the same. */
  readonly wasted: number;
  /** Known cost of those, in micro-USD; null where there is no price. */
  readonly wastedMicroUsd: number | null;
}

export interface CostReport extends UsageSum {
  readonly models: readonly (UsageSum & { readonly model: string })[];
}

/** What a job, or all of a session, has cost so far. Null where the tenant has neither of that id. */
export async function costOf(db: Db, tenant: string, id: string): Promise<CostReport | null> {
  if (!/^\w{1,80}(\/agent\/[1-9]\d{0,8}){0,9}$/.test(id)) return null;
  const found = await findJob(db, tenant, id);
  if (found) return await costOfInput(db, found.input);
  const [known] = await db
    .select({ id: session.id })
    .from(session)
    .where(and(eq(session.id, id), eq(session.tenant, tenant)));
  return known ? await costWhere(db, sql`${turn.session} in (${familyOf(known.id)})`) : null;
}

/** What the turns have cost that worked on an input, those of sub-agents as well. */
export async function costOfInput(db: Db, input: string): Promise<CostReport> {
  return await costWhere(db, workedOn(input));
}

/** Turns of the session that has the input, and of all sub-agents that were started for it. */
export function workedOn(input: string): SQL {
  return sql`(${turn.origin} = ${input} or ${turn.session} in (
    select a.session from pawl.sub_agent a where a.origin = ${input}))`;
}

/** A session, and all that it has started, however far down. */
function familyOf(id: string): SQL {
  return sql`with recursive family as (
    select ${id}::text as session
    union all
    select a.session from family f join pawl.sub_agent a on a.parent = f.session
  ) select session from family`;
}

const TOTAL = '';

async function costWhere(db: Db, which: SQL): Promise<CostReport> {
  const rows = await db
    .select({
      model: sql<string>`coalesce(${usage.model}, ${TOTAL})`,
      requests: sql<number>`count(*)`.mapWith(Number),
      incomplete: sql<number>`count(*) filter (where not ${usage.complete})`.mapWith(Number),
      wasted: sql<number>`count(*) filter (where ${usage.wasted})`.mapWith(Number),
      wastedMicroUsd: sql<number>`coalesce(sum(${usage.costMicroUsd}) filter (where ${usage.wasted}), 0)`.mapWith(
        Number,
      ),
      sum: usageSum,
    })
    .from(usage)
    .innerJoin(turn, eq(turn.id, usage.turn))
    .where(which)
    .groupBy(sql`grouping sets ((${usage.model}), ())`)
    .orderBy(asc(usage.model));
  const sums = rows.map(({ sum, wastedMicroUsd, ...row }) => ({
    ...row,
    ...sum,
    wastedMicroUsd: sum.microUsd === null ? null : wastedMicroUsd,
  }));
  const total = sums.find(({ model }) => model === TOTAL);
  if (!total) throw new Error('a sum over everything has one row');
  const { model: _all, ...all } = total;
  return { ...all, models: sums.filter((each) => each !== total) };
}
