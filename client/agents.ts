import { and, asc, eq, inArray, isNull, type SQL } from 'drizzle-orm';
import type { Db } from '../activities/store/database.ts';
import { session, subAgent, turn } from '../activities/store/schema.ts';
import type { AgentMode } from '../workflows/core/agents.ts';
import type { Usage } from '../workflows/core/sample-outcome.ts';
import { endOf } from './read-jobs.ts';

/** A sub-agent: who started it, how it ended, what it cost. */
export interface ShownAgent {
  /** Its session. */
  readonly agent: string;
  readonly name: string;
  readonly mode: AgentMode;
  /** The turn that started it, by that call. */
  readonly startedBy: string;
  readonly call: string;
  readonly startedAt: string;
  /** What it may spend; null: without a limit. */
  readonly leaseTokens: number | null;
  readonly leaseMicroUsd: number | null;
  /** Null while it runs. `usage` has what its own sub-agents spent. */
  readonly end: {
    readonly reason: string;
    readonly detail: string;
    readonly decidedBy: string;
    readonly by: string | null;
    readonly why: string | null;
    readonly usage: Usage;
    readonly at: string;
  } | null;
}

/** All that worked on an input, however far down. */
export async function agentsOfInput(db: Db, input: string): Promise<readonly ShownAgent[]> {
  return await agentsWhere(db, eq(subAgent.origin, input));
}

/** Those that a turn has started itself. */
export async function agentsOfTurn(db: Db, turnId: string): Promise<readonly ShownAgent[]> {
  return await agentsWhere(db, eq(subAgent.turn, turnId));
}

/** Those that run now, by the session at the root. */
export async function runningAgents(
  db: Db,
  sessions: readonly string[],
): Promise<ReadonlyMap<string, readonly ShownAgent[]>> {
  if (sessions.length === 0) return new Map();
  const rows = await db
    .select({ id: subAgent.session, stream: session.stream })
    .from(subAgent)
    .innerJoin(session, eq(session.id, subAgent.session))
    .where(and(isNull(subAgent.endedAt), inArray(session.stream, [...sessions])));
  if (rows.length === 0) return new Map();
  const ids = rows.map(({ id }) => id);
  const shown = await agentsWhere(db, inArray(subAgent.session, ids));
  return new Map(
    sessions.map((root) => [
      root,
      shown.filter(({ agent }) => rows.some((row) => row.id === agent && row.stream === root)),
    ]),
  );
}

async function agentsWhere(db: Db, which: SQL): Promise<readonly ShownAgent[]> {
  const rows = await db
    .select({ row: subAgent, turn })
    .from(subAgent)
    .leftJoin(turn, eq(turn.id, subAgent.endTurn))
    .where(which)
    .orderBy(asc(subAgent.createdAt), asc(subAgent.session));
  return rows.map(({ row, turn: last }) => ({
    agent: row.session,
    name: row.name,
    mode: row.mode,
    startedBy: row.turn,
    call: row.call,
    startedAt: row.createdAt.toISOString(),
    leaseTokens: row.leaseTokens,
    leaseMicroUsd: row.leaseMicroUsd,
    end: last && shownEnd(last),
  }));
}

function shownEnd(row: typeof turn.$inferSelect): ShownAgent['end'] {
  const end = endOf(row);
  if (!end) return null;
  const { reason, detail, decidedBy, by, why, usage, at } = end;
  return { reason, detail, decidedBy, by, why, usage, at };
}
