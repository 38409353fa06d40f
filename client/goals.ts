import { and, desc, eq } from 'drizzle-orm';
import type { Db } from '../activities/store/database.ts';
import { awaitedEvent } from '../activities/store/awaited-event.ts';
import { findGoal, type GoalRow } from '../activities/store/goals.ts';
import { verdictText } from '../activities/store/goal-verdicts.ts';
import { goal, wake, type WakeSource } from '../activities/store/schema.ts';
import { type PlannedGoal } from '../activities/store/goal-plan.ts';
import { type ShownCommand, shownCommands } from './shown-commands.ts';

/** Ids are ours: whatever else stands in a request names nothing. A recurring goal's round reads `<template>/<time>`. */
const ID = /^goal_[0-9a-z]{1,64}(\/[\d:.TZ-]{10,40})?$/;

export function isGoalId(id: string): boolean {
  return ID.test(id);
}

export async function goalOf(db: Db, at: { readonly tenant: string; readonly goal: string }): Promise<GoalRow | null> {
  if (!isGoalId(at.goal)) return null;
  const row = await findGoal(db, at.goal);
  return row?.tenant === at.tenant ? row : null;
}

export interface ShownWake {
  readonly id: string;
  readonly source: WakeSource;
  readonly event: string | null;
  readonly by: string | null;
  readonly outcome: string | null;
  readonly why: string | null;
  readonly at: string;
}

/** A goal as people see it. Times are ISO, money is in micro-USD. */
export interface Goal {
  readonly id: string;
  readonly session: string;
  readonly objective: string;
  /** Counts the objectives it has had. */
  readonly version: number;
  readonly status: string;
  readonly final: boolean;
  readonly rounds: number;
  readonly budget: PlannedGoal['budget'];
  readonly spent: GoalRow['state']['spent'];
  readonly checks: GoalRow['checks'];
  readonly sceptics: number;
  readonly template: string | null;
  readonly createdBy: string | null;
  readonly createdAt: string;
  readonly changedAt: string;
}

function toGoal(row: GoalRow): Goal {
  const { id, session: owner, objective, version, status, state, checks, template, createdBy } = row;
  const { rounds, budget, spent, sceptics } = state;
  return {
    id,
    session: owner,
    objective,
    version,
    status,
    final: row.isFinal,
    rounds,
    budget,
    spent,
    checks,
    sceptics,
    template,
    createdBy,
    createdAt: row.createdAt.toISOString(),
    changedAt: row.changedAt.toISOString(),
  };
}

/** What was found of the newest turn that was judged; a person may read it, so it is no code. */
export interface ShownVerdict {
  readonly source: string;
  readonly text: string;
  readonly nextStep: string | null;
}

/** Newest commands and wakes first. */
export type GoalWithWakes = Goal & {
  /** When its rest ends by itself; null: it does not, or it does not rest. */
  readonly until: string | null;
  /** The event that it waits for, by name. */
  readonly event: string | null;
  readonly verdict: ShownVerdict | null;
  readonly commands: readonly ShownCommand[];
  readonly wakes: readonly ShownWake[];
};

const SHOWN = 200;

export async function showGoal(db: Db, tenant: string, id: string): Promise<GoalWithWakes | null> {
  const row = await goalOf(db, { tenant, goal: id });
  if (!row) return null;
  const wakes = await db.select().from(wake).where(eq(wake.goal, row.id)).orderBy(desc(wake.createdAt)).limit(SHOWN);
  return {
    ...toGoal(row),
    until: untilOf(row.state.status),
    event: await awaitedEvent(db, row),
    verdict: await verdictText(db, row.state.verdict),
    commands: await shownCommands(db, row.id),
    wakes: wakes.map(({ key, source, event, by, outcome, why, createdAt }) => ({
      id: key,
      source,
      event,
      by,
      outcome,
      why,
      at: createdAt.toISOString(),
    })),
  };
}

function untilOf(status: GoalRow['state']['status']): string | null {
  const { untilMs = null } = status.kind === 'waiting' ? status.awaited : 'untilMs' in status ? status : {};
  return untilMs === null ? null : new Date(untilMs).toISOString();
}

/** Newest first. */
export async function listGoals(
  db: Db,
  tenant: string,
  request: { readonly open?: boolean | undefined } = {},
): Promise<readonly Goal[]> {
  const rows = await db
    .select()
    .from(goal)
    .where(and(eq(goal.tenant, tenant), request.open ? eq(goal.isFinal, false) : undefined))
    .orderBy(desc(goal.createdAt), desc(goal.id))
    .limit(SHOWN);
  return rows.map(toGoal);
}
