import { and, eq } from 'drizzle-orm';
import type { Db } from '../activities/store/database.ts';
import { agentOf } from '../activities/store/definitions.ts';
import { planGoal } from '../activities/store/goal-plan.ts';
import { findGoal, type GoalRow, type NewGoal, storeGoal } from '../activities/store/goals.ts';
import { contentHash, sha256 } from '../activities/store/hash.ts';
import { newId } from '../activities/store/ids.ts';
import { insertSession } from '../activities/store/intake.ts';
import { session, type StoredAgent } from '../activities/store/schema.ts';
import { onStore } from './faults.ts';
import type { CreatedGoal, GoalDeps, NewGoalRequest } from './new-goal.ts';
import { refuseBadId } from './own-id.ts';
import { findJob } from './read-jobs.ts';
import { createRecurring } from './recurring.ts';
import { scheduleFault } from './schedule-spec.ts';

/** Stores the goal, and its session where it needs one, then tells the engine. */
export async function createGoal(deps: GoalDeps, request: NewGoalRequest): Promise<CreatedGoal> {
  const { tenant, key, by: _, ...body } = request;
  refuseBadId(key);
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
