import { sql } from 'drizzle-orm';
import type { GoalBill } from '../../workflows/core/goal/goal-event.ts';
import type { Db, Tx } from './database.ts';

type Sums = Record<'tokens' | 'microUsd' | 'heldTokens' | 'heldMicroUsd', string>;

interface BilledAt {
  readonly session: string;
  readonly sinceTurn: number;
  /** The input of a turn that is not to be on it. */
  readonly besides?: string | null;
}

/**
 * What a goal has cost: the requests of its session's turns after that number and of who judged them, as a turn's
 * budget counts them, and sub-agents by what they are charged once they have ended. What those that still run were
 * lent is held back, so that it comes on the bill once.
 */
export async function billOfGoal(db: Db | Tx, { session, sinceTurn, besides = null }: BilledAt): Promise<GoalBill> {
  const { rows } = await db.execute<Sums>(sql`
    with own as (select id from pawl.turn where session = ${session} and n > ${sinceTurn}
      and input is distinct from ${besides}),
    requests as (
      select coalesce(sum(input_tokens - coalesce(cached_tokens, 0) + output_tokens), 0) as tokens,
        coalesce(sum(cost_micro_usd), 0) + coalesce(sum(greatest(0, worst_micro_usd - coalesce(cost_micro_usd, 0)))
          filter (where not complete), 0) as micro_usd
      from pawl.usage where turn in (select id from own)),
    agents as (
      select coalesce(sum(charged_tokens) filter (where ended_at is not null), 0) as tokens,
        coalesce(sum(charged_micro_usd) filter (where ended_at is not null), 0) as micro_usd,
        coalesce(sum(lease_tokens) filter (where ended_at is null), 0) as held_tokens,
        coalesce(sum(lease_micro_usd) filter (where ended_at is null), 0) as held_micro_usd
      from pawl.sub_agent where turn in (select id from own))
    select r.tokens + a.tokens as tokens, r.micro_usd + a.micro_usd as "microUsd",
      a.held_tokens as "heldTokens", a.held_micro_usd as "heldMicroUsd"
    from requests r cross join agents a`);
  const { tokens = 0, microUsd = 0, heldTokens = 0, heldMicroUsd = 0 } = rows[0] ?? {};
  return {
    spent: { tokens: Number(tokens), microUsd: Number(microUsd) },
    held: { tokens: Number(heldTokens), microUsd: Number(heldMicroUsd) },
  };
}
