import { and, eq, gt, sql } from 'drizzle-orm';
import { NO_USAGE, type Usage } from '../../workflows/core/sample-outcome.ts';
import type { Db } from './database.ts';
import { usage } from './schema.ts';

/**
 * The sum over rows of provider requests, as one JSON value. A row that is still open, or whose usage nobody told,
 * makes it incomplete and holds the worst case; one without a price makes the cost unknown.
 */
export const usageSum = sql<Usage>`jsonb_build_object(
  'inputTokens', coalesce(sum(${usage.inputTokens}), 0),
  'cachedTokens', coalesce(sum(${usage.cachedTokens}), 0),
  'outputTokens', coalesce(sum(${usage.outputTokens}), 0),
  'reasoningTokens', coalesce(sum(${usage.reasoningTokens}), 0),
  'complete', coalesce(bool_and(${usage.complete}), true),
  'microUsd', case when bool_or(${usage.worstMicroUsd} is null) then null
    else coalesce(sum(${usage.costMicroUsd}), 0) end,
  'heldMicroUsd', coalesce(sum(greatest(0, ${usage.worstMicroUsd} - coalesce(${usage.costMicroUsd}, 0)))
    filter (where not ${usage.complete}), 0))`;

/** Everything that a turn and its sub-agents have spent, as a value for a statement that writes it down. */
export function usageOfTurn(turn: string) {
  return sql`(select ${usageSum} from ${usage} where ${usage.turn} = any(array(${familyOf(turn)})))`;
}

/** The turn, and those of all that it has started, however far down. */
function familyOf(turn: string) {
  return sql`with recursive family as (
    select ${turn}::text as turn
    union all
    select t.id from family f join pawl.sub_agent a on a.turn = f.turn join pawl.turn t on t.session = a.session
  ) select turn from family`;
}

/** Everything that the attempts at one request have spent, also one that was answered and whose worker was lost then. */
export async function usageOfSample(db: Db, sample: string): Promise<Usage> {
  const [row] = await db.select({ sum: usageSum }).from(usage).where(eq(usage.sample, sample));
  return row?.sum ?? NO_USAGE;
}

/** What the attempts before this one have spent that died and whose outcome nobody was told. */
export async function lostUsage(db: Db, sample: string): Promise<Usage> {
  const told = sql`coalesce((select max(told.opened_at) from pawl.usage told
    where told.sample = ${sample} and told.closed_at is not null and told.outcome <> 'lost'), '-infinity')`;
  const [row] = await db
    .select({ sum: usageSum })
    .from(usage)
    .where(and(eq(usage.sample, sample), eq(usage.outcome, 'lost'), gt(usage.openedAt, told)));
  return row?.sum ?? NO_USAGE;
}
