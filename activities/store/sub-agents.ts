import { and, type AnyColumn, asc, eq, inArray, isNull, type SQL, sql } from 'drizzle-orm';
import { agentSessionId, type AgentsCount, agentsWaitId, depthOf, type Lease } from '../../workflows/core/agents.ts';
import type { Decider } from '../../workflows/core/ends.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Db, Tx } from './database.ts';
import { storableDeep } from './hash.ts';
import type { CancelRequest } from './cancels.ts';
import { cancel, subAgent, turn } from './schema.ts';

export type AgentRow = typeof subAgent.$inferSelect;

/** Whether a session, or a turn, belongs to a sub-agent. */
export function isOfAgent(id: string): boolean {
  return depthOf(id) > 0;
}

/** Null for a session that was not started by another one. `lock`: whoever wants it cancelled waits. */
export async function agentOfSession(tx: Tx | Db, session: string, lock?: 'lock'): Promise<AgentRow | null> {
  if (depthOf(session) === 0) return null;
  const query = tx.select().from(subAgent).where(eq(subAgent.session, session));
  const [row] = lock ? await query.for('share') : await query;
  return row ?? null;
}

/** Of a sub-agent that is over: nothing more is heard there. False for a session that was not started by another one. */
export async function hasEnded(tx: Tx | Db, session: string): Promise<boolean> {
  return ((await agentOfSession(tx, session))?.endedAt ?? null) !== null;
}

export function leaseOfRow({ leaseTokens, leaseMicroUsd }: AgentRow): Lease {
  return { tokens: leaseTokens, microUsd: leaseMicroUsd };
}

export async function agentOfCall(tx: Tx | Db, call: string): Promise<AgentRow | null> {
  const [row] = await tx.select().from(subAgent).where(eq(subAgent.call, call));
  return row ?? null;
}

/** Those that a session has in the background; `ids` narrows it down. In the order in which they were started. */
export async function backgroundAgents(tx: Tx, parent: string, ids: readonly string[] | null): Promise<AgentRow[]> {
  return await tx
    .select()
    .from(subAgent)
    .where(
      and(
        eq(subAgent.parent, parent),
        eq(subAgent.mode, 'background'),
        ids === null ? undefined : inArray(subAgent.session, [...ids]),
      ),
    )
    .orderBy(asc(subAgent.n));
}

export async function runningAgents(tx: Tx | Db, parent: string): Promise<number> {
  return await tx.$count(subAgent, and(eq(subAgent.parent, parent), isNull(subAgent.endedAt)));
}

/** What the sub-agents that a turn has started count against its budgets now. */
export async function countAgents(tx: Tx | Db, turnId: string): Promise<AgentsCount> {
  const counted = (lease: AnyColumn, charged: AnyColumn) =>
    sql<number>`coalesce(sum(case when ${subAgent.endedAt} is null then coalesce(${lease}, 0) else ${charged} end), 0)`;
  const [row] = await tx
    .select({
      version: sql<number>`count(*) + count(${subAgent.endedAt})`.mapWith(Number),
      tokens: counted(subAgent.leaseTokens, subAgent.chargedTokens).mapWith(Number),
      microUsd: counted(subAgent.leaseMicroUsd, subAgent.chargedMicroUsd).mapWith(Number),
    })
    .from(subAgent)
    .where(eq(subAgent.turn, turnId));
  return row ?? { version: 0, tokens: 0, microUsd: 0 };
}

/** What a turn's own requests count against its budgets, as its workflow counts them. */
export async function spentByTurn(
  tx: Tx | Db,
  turnId: string,
): Promise<{ readonly tokens: number; readonly microUsd: number }> {
  const { rows } = await tx.execute<{ tokens: string; microUsd: string }>(sql`
    select coalesce(sum(input_tokens - cached_tokens + output_tokens), 0) as tokens,
      coalesce(sum(cost_micro_usd), 0) + coalesce(sum(greatest(0, worst_micro_usd - coalesce(cost_micro_usd, 0)))
        filter (where not complete), 0) as "microUsd"
    from pawl.usage where turn = ${turnId}`);
  return { tokens: Number(rows[0]?.tokens ?? 0), microUsd: Number(rows[0]?.microUsd ?? 0) };
}

/** Who stopped what had started them. */
export interface CascadeAuthor {
  readonly by: string;
  readonly why: string | null;
  readonly decidedBy: Decider;
}

/**
 * Marks running sub-agents as cancelled; the first word stands. Takes their rows before any session's, as their own
 * ends do, and always in one order. Returns how many.
 */
export async function markCancelled(tx: Tx, which: SQL | undefined, author: CascadeAuthor): Promise<number> {
  const { by, why, decidedBy } = storableDeep(author);
  const rows = await tx
    .select({ id: subAgent.session })
    .from(subAgent)
    .where(and(which, isNull(subAgent.endedAt), isNull(subAgent.cancelledAt)))
    .orderBy(sql`length(${subAgent.session}) desc`, subAgent.session)
    .for('no key update');
  const ids = rows.map(({ id }) => id);
  if (ids.length === 0) return 0;
  await tx
    .update(subAgent)
    .set({ cancelledAt: sql`clock_timestamp()`, cancelBy: by, cancelWhy: why, cancelDecidedBy: decidedBy })
    .where(inArray(subAgent.session, ids));
  return ids.length;
}

export const agentsOf = (parent: string, which: 'foreground' | 'all') =>
  and(eq(subAgent.parent, parent), which === 'all' ? undefined : eq(subAgent.mode, 'foreground'));

export const startedBy = (call: string) => eq(subAgent.call, call);

/** Whether a turn is being stopped, or whoever started its session: it starts nothing more. Its lock is held. */
export async function isStopped(tx: Tx, at: { readonly id: string; readonly session: string }): Promise<boolean> {
  const own = await agentOfSession(tx, at.session);
  return (own?.cancelledAt ?? null) !== null || (await tx.$count(cancel, eq(cancel.turn, at.id))) > 0;
}

/** A sub-agent that is to be cancelled, and its open turn, where it has one by now. */
export interface DueCancel {
  readonly agent: AgentRow;
  readonly turn: string | null;
}

/** The cancel of a sub-agent's turn: the decider is whoever decided on the end of what started it. */
export function parentCancel(agent: AgentRow, turnId: string): CancelRequest {
  return {
    turn: turnId,
    id: `cancel/${agent.session}`,
    by: agent.cancelBy ?? 'unknown',
    why: agent.cancelWhy,
    decidedBy: agent.cancelDecidedBy ?? 'runtime',
    detail: 'parent_cancelled',
  };
}

export async function openTurnOf(db: Db, session: string): Promise<string | null> {
  const [row] = await db
    .select({ id: turn.id })
    .from(turn)
    .where(and(eq(turn.session, session), isNull(turn.endedAt)));
  return row?.id ?? null;
}

/** However far down. */
function isBelow(session: string): SQL {
  return sql`starts_with(${subAgent.session}, ${agentSessionId(session, '')})`;
}

/**
 * Marks all that runs below a session, so that no level waits for the one above it, and nothing that is being started
 * just then is missed. A turn starts sub-agents under its own lock, and opens under that of its sub-agent's row: each
 * round waits for both, and the last one finds nothing new.
 */
export async function markFamily(db: Db, session: string, author: CascadeAuthor): Promise<void> {
  while ((await db.transaction((tx) => markRound(tx, session, author))) > 0);
}

/** Turns from the top down, then rows from the bottom up: the order in which ends of turns take them. */
async function markRound(tx: Tx, session: string, author: CascadeAuthor): Promise<number> {
  const ofFamily = sql`(${turn.session} = ${session} or starts_with(${turn.session}, ${agentSessionId(session, '')}))`;
  await tx
    .select({ id: turn.id })
    .from(turn)
    .where(and(ofFamily, isNull(turn.endedAt)))
    .orderBy(sql`length(${turn.session})`, turn.session)
    .for('no key update');
  return await markCancelled(tx, isBelow(session), author);
}

/** Below one session, or of all that nobody has heard of for a while. */
export async function dueCancels(db: Db, of: { readonly parent: string } | 'overdue'): Promise<DueCancel[]> {
  const which =
    of === 'overdue'
      ? sql`${subAgent.cancelledAt} < clock_timestamp() - ${settled()}`
      : and(isBelow(of.parent), sql`${subAgent.cancelledAt} is not null`);
  return await db
    .select({ agent: subAgent, turn: turn.id })
    .from(subAgent)
    .leftJoin(turn, and(eq(turn.session, subAgent.session), isNull(turn.endedAt)))
    .where(and(which, isNull(subAgent.endedAt)));
}

/** How old a row must be before its notice counts as lost. */
function settled() {
  return sql`make_interval(secs => ${POLICY.recovery.redeliverAfterMs / 1_000})`;
}

/** Open turns that wait for sub-agents which have ended, and may not have been told. */
export async function untoldEnds(db: Db): Promise<readonly { turn: string; wait: string }[]> {
  const { rows } = await db.execute<{ turn: string; session: string; parent: string; own: boolean }>(sql`
    select t.id as turn, a.session, a.parent, c.key = a.call as own
    from pawl.sub_agent a
    join pawl.turn t on t.session = a.parent and t.ended_at is null
    join pawl.call c on c.turn = t.id and c.status is null
      and (c.key = a.call or (c.tool = 'wait_agents' and a.ended_at > clock_timestamp() - interval '5 minutes'))
    where a.ended_at < clock_timestamp() - ${settled()}`);
  return rows.map(({ turn: id, session, parent, own }) => ({
    turn: id,
    wait: own ? session : agentsWaitId(parent),
  }));
}
