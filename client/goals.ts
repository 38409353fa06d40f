import { and, desc, eq } from 'drizzle-orm';
import type { Db } from '../activities/store/database.ts';
import { keepAnswer, storeGoalCommand } from '../activities/store/goal-commands.ts';
import { findGoal, type GoalRow, storeGoal } from '../activities/store/goals.ts';
import { contentHash, sha256 } from '../activities/store/hash.ts';
import { newId } from '../activities/store/ids.ts';
import { insertSession } from '../activities/store/intake.ts';
import { goal, type GoalSchedule, session, wake } from '../activities/store/schema.ts';
import { type StoredWake, storeWake } from '../activities/store/wakes.ts';
import type { GoalCommand } from '../workflows/core/goal/goal-event.ts';
import type { ClientEngine } from './engine.ts';
import { onStore } from './faults.ts';
import {
  type BudgetWish,
  changedBudget,
  type GoalWish,
  type PlannedGoal,
  planGoal,
} from '../activities/store/goal-plan.ts';
import { findJob } from './read-jobs.ts';
import { createRecurring, orderRecurring, templateOf } from './recurring.ts';
import type { Catalogue } from './submit.ts';

export interface GoalDeps {
  readonly db: Db;
  readonly engine: ClientEngine;
  readonly catalogue: Catalogue;
}

export interface NewGoalRequest extends GoalWish {
  readonly tenant: string;
  /** The caller's own key: the same key with the same body is the same goal. */
  readonly key: string;
  readonly objective: string;
  /** The session that is to work on it, or a job of that session; a new one if left out. */
  readonly session?: string | undefined;
  readonly agent?: string | undefined;
  readonly workspace?: string | undefined;
  /** When it begins anew; with a session: when that one goal is woken. */
  readonly schedule?: GoalSchedule | undefined;
  readonly by: string;
}

export type CreatedGoal =
  /** `session`: null for a recurring one, each of whose rounds has one of its own. */
  | { readonly kind: 'accepted'; readonly goal: string; readonly session: string | null; readonly isNew: boolean }
  | { readonly kind: 'conflict'; readonly goal: string }
  | { readonly kind: 'another_is_open' }
  | { readonly kind: 'unknown_session' }
  | { readonly kind: 'unknown_agent'; readonly asked: string; readonly known: readonly string[] }
  | { readonly kind: 'refused'; readonly why: string };

/** Stores the goal, and its session where it needs one, then tells the engine. */
export async function createGoal(deps: GoalDeps, request: NewGoalRequest): Promise<CreatedGoal> {
  const { tenant, key, by: _, ...body } = request;
  const fingerprint = contentHash(body);
  const id = `goal_${sha256('goal', tenant, key).slice(0, 32)}`;
  const { schedule } = request;
  if (schedule && request.session === undefined)
    return await createRecurring(deps, { ...request, schedule }, { id, fingerprint });
  const created = await onStore(async () => {
    const before = await findGoal(deps.db, id);
    if (before) return asKnown(before, fingerprint);
    return await storeNew(deps, request, { id, fingerprint });
  });
  if (created.kind !== 'accepted') return created;
  await deps.engine.lookGoal(created.goal);
  if (schedule) await deps.engine.schedule({ target: 'goal', id }, schedule);
  return created;
}

function asKnown(row: GoalRow, fingerprint: string): CreatedGoal {
  if (row.fingerprint !== fingerprint) return { kind: 'conflict', goal: row.id };
  return { kind: 'accepted', goal: row.id, session: row.session, isNew: false };
}

interface Identity {
  readonly id: string;
  readonly fingerprint: string;
}

async function storeNew({ db, catalogue }: GoalDeps, request: NewGoalRequest, own: Identity): Promise<CreatedGoal> {
  const { tenant, agent: name, objective, by } = request;
  const agent = catalogue.agent(name);
  if (!agent) return { kind: 'unknown_agent', asked: name ?? '', known: catalogue.names };
  const planned = planGoal(agent, request);
  if (planned.kind === 'refused') return planned;
  const common = { ...own, ...planned.goal, tenant, objective, by };
  if (request.session !== undefined) {
    const owner = await sessionOf(db, tenant, request.session);
    if (owner === null) return { kind: 'unknown_session' };
    return answerOf(await storeGoal(db, { ...common, session: owner }), own.id, owner);
  }
  const found = catalogue.workspace(request.workspace, own.id);
  if (!found.ok) return { kind: 'refused', why: found.why };
  const owner = newId('ses');
  return await db.transaction(async (tx) => {
    await insertSession(tx, { id: owner, tenant, agent, workspace: found.workspace, title: null });
    return answerOf(await storeGoal(tx, { ...common, session: owner }), own.id, owner);
  });
}

function answerOf(stored: Awaited<ReturnType<typeof storeGoal>>, id: string, owner: string): CreatedGoal {
  if (stored === 'another_is_open') return { kind: 'another_is_open' };
  return { kind: 'accepted', goal: id, session: owner, isNew: stored === 'stored' };
}

async function sessionOf(db: Db, tenant: string, id: string): Promise<string | null> {
  const found = await findJob(db, tenant, id);
  if (found) return found.job.session;
  if (!/^\w{1,80}$/.test(id)) return null;
  const [row] = await db
    .select({ id: session.id })
    .from(session)
    .where(and(eq(session.id, id), eq(session.tenant, tenant)));
  return row?.id ?? null;
}

export interface GoalOrder {
  /** The same id again is the same command; one of its own if left out. */
  readonly id?: string | undefined;
  readonly kind: GoalCommand['kind'];
  readonly by: string;
  readonly why?: string | undefined;
  /** For `edit`. */
  readonly objective?: string | undefined;
  readonly budget?: BudgetWish | undefined;
}

export type OrderAnswer =
  | { readonly kind: 'done'; readonly status: string }
  | { readonly kind: 'final'; readonly status: string }
  | { readonly kind: 'conflict' };

/** Tells a goal what to do, and brings its new status. Null: the tenant has no such goal. */
export async function orderGoal(
  deps: Pick<GoalDeps, 'db' | 'engine'>,
  at: { readonly tenant: string; readonly goal: string },
  order: GoalOrder,
): Promise<OrderAnswer | null> {
  const { db, engine } = deps;
  const { id = newId('cmd'), kind, by, why, objective } = order;
  const budget = order.budget ? changedBudget(order.budget) : undefined;
  const row = await onStore(() => goalOf(db, at));
  const template = row ? null : await onStore(() => templateOf(db, at));
  if (template) return await orderRecurring(deps, template, order);
  if (!row) return null;
  const asked = { goal: row.id, id, kind, objective, budget, by, why: why ?? null };
  const stored = await onStore(() => storeGoalCommand(db, asked));
  if (stored.kind === 'conflict') return stored;
  if (stored.answer !== null) return { kind: 'done', status: stored.answer };
  if (row.isFinal) return { kind: 'final', status: row.status };
  const command: GoalCommand =
    kind === 'edit'
      ? { id, kind, budget: budget ?? {}, objective: objective === undefined ? 'same' : 'changed' }
      : { id, kind };
  const status = await engine.commandGoal(row.id, command);
  if (status === null)
    return { kind: 'final', status: (await onStore(() => findGoal(db, row.id)))?.status ?? row.status };
  await onStore(() => keepAnswer(db, row.id, id, status));
  if (kind === 'cancel') await engine.changeSchedule(row.id, kind);
  return { kind: 'done', status };
}

export interface WakeRequest {
  /** Twice delivered is once woken; one of its own if left out. */
  readonly id?: string | undefined;
  /** What has happened, where the goal may wait for it by name. */
  readonly event?: string | undefined;
  readonly by: string;
}

export type WokenGoal = Omit<StoredWake, 'isBeingTold'>;

/** Wakes a goal: a row first, then the engine. Null: the tenant has no such goal. */
export async function wakeGoal(
  { db, engine }: GoalDeps,
  at: { readonly tenant: string; readonly goal: string },
  { id: key = newId('wk'), event, by }: WakeRequest,
): Promise<WokenGoal | null> {
  const row = await onStore(() => goalOf(db, at));
  if (!row) return null;
  const stored = await onStore(() => storeWake(db, { goal: row.id, key, source: 'api', event: event ?? null, by }));
  if (stored.outcome === null && !stored.isBeingTold) await engine.lookGoal(row.id);
  const { id, isNew, outcome, why } = stored;
  return { id, isNew, outcome, why };
}

/** Ids are ours: whatever else stands in a request names nothing. A recurring goal's round reads `<template>/<time>`. */
const ID = /^goal_[0-9a-z]{1,64}(\/[\d:.TZ-]{10,40})?$/;

export async function goalOf(db: Db, at: { readonly tenant: string; readonly goal: string }): Promise<GoalRow | null> {
  if (!ID.test(at.goal)) return null;
  const row = await findGoal(db, at.goal);
  return row?.tenant === at.tenant ? row : null;
}

export interface ShownWake {
  readonly id: string;
  readonly source: 'api' | 'schedule';
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

export type GoalWithWakes = Goal & { readonly wakes: readonly ShownWake[] };

const SHOWN = 200;

export async function showGoal(db: Db, tenant: string, id: string): Promise<GoalWithWakes | null> {
  const row = await goalOf(db, { tenant, goal: id });
  if (!row) return null;
  const wakes = await db.select().from(wake).where(eq(wake.goal, row.id)).orderBy(desc(wake.createdAt)).limit(SHOWN);
  return {
    ...toGoal(row),
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
