import { and, asc, desc, eq, isNull, sql } from 'drizzle-orm';
import type { Db, Tx } from '../activities/store/database.ts';
import type { NewGoalCommand } from '../activities/store/goal-commands.ts';
import { findGoal } from '../activities/store/goals.ts';
import { contentHash, storable, storableDeep } from '../activities/store/hash.ts';
import {
  agent as agents,
  type FiringOutcome,
  type GoalCheck,
  goalFiring,
  type GoalSchedule,
  goalTemplate,
} from '../activities/store/schema.ts';
import { isGoalId } from './goals.ts';
import type { CreatedGoal, GoalDeps, Identity, NewGoalRequest } from './new-goal.ts';
import { type ShownCommand, shownCommands } from './shown-commands.ts';
import { planGoal } from '../activities/store/goal-plan.ts';
import type { GoalBudget } from '../workflows/core/goal/goal-state.ts';

export type TemplateRow = typeof goalTemplate.$inferSelect;

/** Whoever uses the same key at once waits, and finds what the first has made of it. */
export async function oneAtATime<T>(db: Db, id: string, work: (tx: Tx) => Promise<T>): Promise<T> {
  return await db.transaction(async (tx) => {
    await tx.execute(sql`select pg_advisory_xact_lock(hashtextextended(${id}, 0))`);
    return await work(tx);
  });
}

export async function isTemplate(tx: Tx, id: string): Promise<boolean> {
  return (await tx.$count(goalTemplate, eq(goalTemplate.id, id))) > 0;
}

/** Stores a recurring goal; each of its firings begins a goal of its own with fresh budgets. */
export async function storeRecurring(
  { db, catalogue }: GoalDeps,
  request: NewGoalRequest & { readonly schedule: GoalSchedule },
  own: Identity,
): Promise<CreatedGoal> {
  return await oneAtATime(db, own.id, async (tx): Promise<CreatedGoal> => {
    const [before] = await tx.select().from(goalTemplate).where(eq(goalTemplate.id, own.id));
    if (before && before.fingerprint !== own.fingerprint) return { kind: 'conflict', goal: own.id };
    if (before) return { kind: 'accepted', goal: own.id, session: null, isNew: false };
    if (await findGoal(tx, own.id)) return { kind: 'conflict', goal: own.id };
    const pinned = catalogue.agent(request.agent);
    if (!pinned) return { kind: 'unknown_agent', asked: request.agent ?? '', known: catalogue.names };
    const planned = planGoal(pinned, request, catalogue.toolCheck);
    if (planned.kind === 'refused') return planned;
    const found = catalogue.workspace(request.workspace, own.id);
    if (!found.ok) return { kind: 'refused', why: found.why };
    const hash = contentHash(pinned);
    await tx.insert(agents).values({ hash, name: pinned.name, definition: pinned }).onConflictDoNothing();
    const { kind, path, queue } = found.workspace;
    const { tenant, objective, schedule, by } = request;
    const where = { workspaceKind: kind, workspacePath: path, workspaceQueue: queue };
    const row = { ...own, ...planned.goal, ...where, tenant, objective, schedule, agent: hash, createdBy: by };
    await tx.insert(goalTemplate).values(storableDeep(row));
    return { kind: 'accepted', goal: own.id, session: null, isNew: true };
  });
}

export async function templateOf(
  db: Db,
  at: { readonly tenant: string; readonly goal: string },
): Promise<TemplateRow | null> {
  if (!isGoalId(at.goal)) return null;
  const [row] = await db.select().from(goalTemplate).where(eq(goalTemplate.id, at.goal));
  return row?.tenant === at.tenant ? row : null;
}

/** Does to the rows what a command wants, and brings the status; null where the recurring goal is over. */
export async function changeTemplate(
  db: Db,
  id: string,
  { kind, objective, budget, checks = null }: NewGoalCommand,
): Promise<RecurringGoal['status'] | null> {
  const isOpen = and(eq(goalTemplate.id, id), isNull(goalTemplate.endedAt));
  return await db.transaction(async (tx) => {
    const [row] = await tx.select().from(goalTemplate).where(isOpen).for('update');
    if (!row) return null;
    const { schedule } = row;
    const paused = { pause: true, resume: false, edit: schedule.paused, cancel: schedule.paused }[kind];
    await tx
      .update(goalTemplate)
      .set({
        budget: { ...row.budget, ...budget },
        schedule: paused === undefined ? schedule : { ...schedule, paused },
        ...(objective === undefined ? {} : { objective: storable(objective) }),
        ...(checks === null ? {} : { checks: storableDeep(checks) }),
        ...(kind === 'cancel' ? { endedAt: sql`clock_timestamp()` } : {}),
      })
      .where(isOpen);
    if (kind === 'cancel') return 'cancelled';
    return paused ? 'paused(user)' : 'active';
  });
}

/** A recurring goal, without its firings. */
export interface RecurringLine {
  readonly id: string;
  readonly objective: string;
  readonly schedule: GoalSchedule;
  readonly status: 'active' | 'paused(user)' | 'cancelled';
}

/** A recurring goal, its newest firings first. Times are ISO. */
export interface RecurringGoal extends RecurringLine {
  readonly endedAt: string | null;
  readonly budget: GoalBudget;
  readonly checks: readonly GoalCheck[];
  /** What somebody told it to do, newest first. */
  readonly commands: readonly ShownCommand[];
  readonly firings: readonly {
    /** The time it was meant for. */
    readonly slot: string;
    readonly outcome: FiringOutcome;
    /** The goal that it began, or the one that stood in its way. */
    readonly goal: string | null;
    readonly at: string;
  }[];
}

const SHOWN = 200;

export async function showRecurring(db: Db, tenant: string, id: string): Promise<RecurringGoal | null> {
  const row = await templateOf(db, { tenant, goal: id });
  if (!row) return null;
  const firings = await db
    .select()
    .from(goalFiring)
    .where(eq(goalFiring.template, id))
    .orderBy(desc(goalFiring.slot), asc(goalFiring.createdAt))
    .limit(SHOWN);
  return {
    ...lineOf(row),
    endedAt: row.endedAt?.toISOString() ?? null,
    budget: row.budget,
    checks: row.checks,
    commands: await shownCommands(db, id),
    firings: firings.map(({ slot, outcome, goal, createdAt }) => ({
      slot: slot.toISOString(),
      outcome,
      goal,
      at: createdAt.toISOString(),
    })),
  };
}

function lineOf({ id, objective, schedule, endedAt }: TemplateRow): RecurringLine {
  return { id, objective, schedule, status: endedAt ? 'cancelled' : schedule.paused ? 'paused(user)' : 'active' };
}

/** Newest first; `open`: those that are not cancelled. */
export async function listRecurring(
  db: Db,
  tenant: string,
  request: { readonly open?: boolean | undefined } = {},
): Promise<readonly RecurringLine[]> {
  const rows = await db
    .select()
    .from(goalTemplate)
    .where(and(eq(goalTemplate.tenant, tenant), request.open ? isNull(goalTemplate.endedAt) : undefined))
    .orderBy(desc(goalTemplate.createdAt), desc(goalTemplate.id))
    .limit(SHOWN);
  return rows.map(lineOf);
}
