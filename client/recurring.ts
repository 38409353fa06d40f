import { and, asc, desc, eq, isNull } from 'drizzle-orm';
import type { Db } from '../activities/store/database.ts';
import { endTemplate } from '../activities/store/firings.ts';
import { contentHash } from '../activities/store/hash.ts';
import {
  agent as agents,
  type FiringOutcome,
  goalFiring,
  type GoalSchedule,
  goalTemplate,
} from '../activities/store/schema.ts';
import { onStore } from './faults.ts';
import type { CreatedGoal, GoalDeps, GoalOrder, NewGoalRequest, OrderAnswer } from './goals.ts';
import { changedBudget, planGoal } from '../activities/store/goal-plan.ts';

type TemplateRow = typeof goalTemplate.$inferSelect;

/** Stores a recurring goal, then has the engine fire; each firing begins a goal of its own with fresh budgets. */
export async function createRecurring(
  { db, engine, catalogue }: GoalDeps,
  request: NewGoalRequest & { readonly schedule: GoalSchedule },
  own: { readonly id: string; readonly fingerprint: string },
): Promise<CreatedGoal> {
  const created = await onStore(async (): Promise<CreatedGoal> => {
    const [before] = await db.select().from(goalTemplate).where(eq(goalTemplate.id, own.id));
    if (before && before.fingerprint !== own.fingerprint) return { kind: 'conflict', goal: own.id };
    if (before) return { kind: 'accepted', goal: own.id, session: null, isNew: false };
    const pinned = catalogue.agent(request.agent);
    if (!pinned) return { kind: 'unknown_agent', asked: request.agent ?? '', known: catalogue.names };
    const planned = planGoal(pinned, request);
    if (planned.kind === 'refused') return planned;
    const found = catalogue.workspace(request.workspace, own.id);
    if (!found.ok) return { kind: 'refused', why: found.why };
    const hash = contentHash(pinned);
    await db.insert(agents).values({ hash, name: pinned.name, definition: pinned }).onConflictDoNothing();
    const { kind, path, queue } = found.workspace;
    const { tenant, objective, schedule, by } = request;
    const where = { workspaceKind: kind, workspacePath: path, workspaceQueue: queue };
    const row = { ...own, ...planned.goal, ...where, tenant, objective, schedule, agent: hash, createdBy: by };
    await db.insert(goalTemplate).values(row).onConflictDoNothing();
    return { kind: 'accepted', goal: own.id, session: null, isNew: true };
  });
  if (created.kind === 'accepted') await engine.schedule({ target: 'template', id: own.id }, request.schedule);
  return created;
}

export async function templateOf(
  db: Db,
  at: { readonly tenant: string; readonly goal: string },
): Promise<TemplateRow | null> {
  const [row] = await db.select().from(goalTemplate).where(eq(goalTemplate.id, at.goal));
  return row?.tenant === at.tenant ? row : null;
}

/** A round that is open goes on in any case; what changes is which firings come, and what they begin with. */
export async function orderRecurring(
  { db, engine }: Pick<GoalDeps, 'db' | 'engine'>,
  row: TemplateRow,
  { kind, objective, budget }: GoalOrder,
): Promise<OrderAnswer> {
  if (row.endedAt) return { kind: 'final', status: 'cancelled' };
  if (kind === 'edit') {
    const changed = { ...row.budget, ...(budget ? changedBudget(budget) : {}) };
    const set = { budget: changed, ...(objective === undefined ? {} : { objective }) };
    await onStore(() =>
      db
        .update(goalTemplate)
        .set(set)
        .where(and(eq(goalTemplate.id, row.id), isNull(goalTemplate.endedAt))),
    );
    return { kind: 'done', status: 'active' };
  }
  if (kind === 'cancel') await onStore(() => endTemplate(db, row.id));
  await engine.changeSchedule(row.id, kind);
  return { kind: 'done', status: DONE[kind] };
}

const DONE = { pause: 'paused(user)', resume: 'active', cancel: 'cancelled' } as const;

/** A recurring goal, its newest firings first. Times are ISO. */
export interface RecurringGoal {
  readonly id: string;
  readonly objective: string;
  readonly schedule: GoalSchedule;
  readonly endedAt: string | null;
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
    id,
    objective: row.objective,
    schedule: row.schedule,
    endedAt: row.endedAt?.toISOString() ?? null,
    firings: firings.map(({ slot, outcome, goal, createdAt }) => ({
      slot: slot.toISOString(),
      outcome,
      goal,
      at: createdAt.toISOString(),
    })),
  };
}
