import { and, desc, eq } from 'drizzle-orm';
import type { Db } from '../activities/store/database.ts';
import { awaitedEvent } from '../activities/store/awaited-event.ts';
import { agentOf } from '../activities/store/definitions.ts';
import { findGoal, type GoalRow, type NewGoal, storeGoal } from '../activities/store/goals.ts';
import { verdictText } from '../activities/store/goal-verdicts.ts';
import { contentHash, sha256 } from '../activities/store/hash.ts';
import { newId } from '../activities/store/ids.ts';
import { insertSession } from '../activities/store/intake.ts';
import {
  goal,
  type GoalSchedule,
  session,
  type StoredAgent,
  wake,
  type WakeSource,
} from '../activities/store/schema.ts';
import type { ClientEngine } from './engine.ts';
import { onStore } from './faults.ts';
import { type GoalWish, type PlannedGoal, planGoal } from '../activities/store/goal-plan.ts';
import { findJob } from './read-jobs.ts';
import { createRecurring } from './recurring.ts';
import { scheduleFault } from './schedule-spec.ts';
import { type ShownCommand, shownCommands } from './shown-commands.ts';
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
  const fault = schedule ? scheduleFault(schedule) : null;
  if (fault !== null) return { kind: 'refused', why: fault };
  if (schedule && request.session === undefined)
    return await createRecurring(deps, { ...request, schedule }, { id, fingerprint });
  const created = await onStore(async () => {
    const before = await findGoal(deps.db, id);
    if (before) return asKnown(before, fingerprint);
    return await storeNew(deps, request, { id, fingerprint });
  });
  if (created.kind !== 'accepted') return created;
  // Before the goal begins: its end takes the Schedule away.
  if (schedule) await deps.engine.schedule({ target: 'goal', id }, schedule);
  await deps.engine.lookGoal(created.goal);
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

async function storeNew(deps: GoalDeps, request: NewGoalRequest, own: Identity): Promise<CreatedGoal> {
  const { db } = deps;
  const { tenant, objective, by } = request;
  const owner = request.session === undefined ? null : await sessionOf(db, tenant, request.session);
  if (request.session !== undefined && !owner) return { kind: 'unknown_session' };
  // A session keeps the agent that it began with.
  const agent = owner ? await agentOf(db, owner.agent) : deps.catalogue.agent(request.agent);
  if (!agent) return { kind: 'unknown_agent', asked: request.agent ?? '', known: deps.catalogue.names };
  const planned = planGoal(agent, request, deps.catalogue.toolCheck);
  if (planned.kind === 'refused') return planned;
  const common = { ...own, ...planned.goal, tenant, objective, by };
  if (!owner) return await storeWithSession(deps, { ...request, agent }, common);
  return answerOf(await storeGoal(db, { ...common, session: owner.id }), own.id, owner.id);
}

async function storeWithSession(
  { db, catalogue }: GoalDeps,
  { tenant, agent, workspace }: Omit<NewGoalRequest, 'agent'> & { readonly agent: StoredAgent },
  common: Omit<NewGoal, 'session'>,
): Promise<CreatedGoal> {
  const found = catalogue.workspace(workspace, common.id);
  if (!found.ok) return { kind: 'refused', why: found.why };
  const owner = newId('ses');
  return await db.transaction(async (tx) => {
    await insertSession(tx, { id: owner, tenant, agent, workspace: found.workspace, title: null });
    return answerOf(await storeGoal(tx, { ...common, session: owner }), common.id, owner);
  });
}

function answerOf(stored: Awaited<ReturnType<typeof storeGoal>>, id: string, owner: string): CreatedGoal {
  if (stored === 'another_is_open') return { kind: 'another_is_open' };
  return { kind: 'accepted', goal: id, session: owner, isNew: stored === 'stored' };
}

interface Owner {
  readonly id: string;
  /** Hash of its agent. */
  readonly agent: string;
}

async function sessionOf(db: Db, tenant: string, id: string): Promise<Owner | null> {
  const found = await findJob(db, tenant, id);
  const wanted = found?.job.session ?? id;
  if (!/^\w{1,80}$/.test(wanted)) return null;
  const [row] = await db
    .select({ id: session.id, agent: session.agent })
    .from(session)
    .where(and(eq(session.id, wanted), eq(session.tenant, tenant)));
  return row ?? null;
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
