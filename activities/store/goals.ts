import { and, desc, eq, sql } from 'drizzle-orm';
import { isFinal, type GoalBudget, type GoalState } from '../../workflows/core/goal/goal-state.ts';
import { leftOf, UNSPENT } from '../../workflows/core/goal/goal-limits.ts';
import { nameOf } from '../../workflows/core/goal/moving.ts';
import { openGoal } from '../../workflows/core/goal/open-goal.ts';
import type { Db, Tx } from './database.ts';
import { isUniqueViolation } from './errors.ts';
import { storable, storableDeep } from './hash.ts';
import { goal, type GoalCheck, type GoalJudge, goalRound, session, turn } from './schema.ts';

export type GoalRow = typeof goal.$inferSelect;

export interface NewGoal {
  readonly id: string;
  readonly tenant: string;
  readonly session: string;
  readonly objective: string;
  readonly checks: readonly GoalCheck[];
  readonly judge: GoalJudge;
  readonly budget: GoalBudget;
  readonly sceptics: number;
  readonly by: string | null;
  readonly fingerprint: string;
  readonly template?: string | null;
  /** `queued`: the input of a job is its round 0. */
  readonly firstRound?: 'queued';
}

/** One open goal a session; the same id again is the same goal. */
export async function storeGoal(db: Db | Tx, request: NewGoal): Promise<'stored' | 'known' | 'another_is_open'> {
  const { id, tenant, session: owner, objective, checks, judge, fingerprint } = request;
  const { budget, sceptics, by, template = null, firstRound } = request;
  const first = firstRound ? { firstRound } : {};
  const state = openGoal({ budget, sceptics, atMs: Date.now(), ...first, ...(await newestTurn(db, owner)) });
  const asked = { id, tenant, session: owner, objective, checks, judge, fingerprint, template, createdBy: by };
  const row = { ...asked, status: nameOf(state.status), state };
  try {
    const stored = await db
      .insert(goal)
      .values(storableDeep(row))
      .onConflictDoNothing({ target: goal.id })
      .returning({ id: goal.id });
    return stored.length > 0 ? 'stored' : 'known';
  } catch (error) {
    if (isUniqueViolation(error, 'goal_open')) return 'another_is_open';
    throw error;
  }
}

/** Also one that still runs: whatever ends it, it is not this goal's. */
async function newestTurn(db: Db | Tx, id: string): Promise<{ afterTurn?: { n: number; turn: string } }> {
  const [last] = await db
    .select({ n: turn.n, turn: turn.id })
    .from(turn)
    .where(eq(turn.session, id))
    .orderBy(desc(turn.n))
    .limit(1);
  return last ? { afterTurn: last } : {};
}

/** The input that brought the goal counts as a round of it, and keeps to its budget. */
export async function bringsGoal(tx: Tx, { id, budget }: Pick<NewGoal, 'id' | 'budget'>, input: string): Promise<void> {
  const limits = leftOf({ budget, ...UNSPENT });
  await tx.insert(goalRound).values({ goal: id, round: 0, input, limits });
}

export async function findGoal(db: Db | Tx, id: string): Promise<GoalRow | null> {
  const [row] = await db.select().from(goal).where(eq(goal.id, id));
  return row ?? null;
}

/** The goal that a session works on; null where it has none, or that one is final. */
export async function openGoalOf(db: Db | Tx, sessionId: string): Promise<GoalRow | null> {
  const [row] = await db
    .select()
    .from(goal)
    .where(and(eq(goal.session, sessionId), sql`not ${goal.isFinal}`));
  return row ?? null;
}

/** A goal with what never changes about it. */
export interface GoalPlace {
  readonly row: GoalRow;
  readonly stream: string;
  readonly workspacePath: string;
  readonly workspaceQueue: string;
  readonly agent: string;
}

export async function goalPlace(db: Db, id: string): Promise<GoalPlace | null> {
  const [found] = await db
    .select({
      row: goal,
      stream: session.stream,
      workspacePath: session.workspacePath,
      workspaceQueue: session.workspaceQueue,
      agent: session.agent,
    })
    .from(goal)
    .innerJoin(session, eq(session.id, goal.session))
    .where(eq(goal.id, id));
  return found ?? null;
}

/** The reading copy follows the workflow; an attempt that comes late does not set it back. */
export async function copyState(tx: Tx, id: string, state: GoalState): Promise<void> {
  await tx
    .update(goal)
    .set({
      status: nameOf(state.status),
      isFinal: isFinal(state.status),
      state: { ...state, facts: [] },
      changedAt: sql`clock_timestamp()`,
    })
    .where(and(eq(goal.id, id), sql`(${goal.state}->>'nextFact')::integer <= ${state.nextFact}`));
}

/** Null: it stays as it is. */
export async function changeGoal(
  tx: Tx,
  id: string,
  { objective, checks }: { readonly objective: string | null; readonly checks: readonly GoalCheck[] | null },
): Promise<void> {
  await tx
    .update(goal)
    .set({
      ...(objective === null ? {} : { objective: storable(objective), version: sql`${goal.version} + 1` }),
      ...(checks === null ? {} : { checks }),
      changedAt: sql`clock_timestamp()`,
    })
    .where(eq(goal.id, id));
}
