import { and, eq } from 'drizzle-orm';
import type { Db, Tx } from '../activities/store/database.ts';
import { agentOf } from '../activities/store/definitions.ts';
import { planGoal } from '../activities/store/goal-plan.ts';
import { isOver } from '../activities/store/firings.ts';
import { findGoal, type GoalRow, type NewGoal, storeGoal } from '../activities/store/goals.ts';
import { contentHash, sha256 } from '../activities/store/hash.ts';
import { closedBy } from '../activities/store/session-life.ts';
import { newId } from '../activities/store/ids.ts';
import { insertSession } from '../activities/store/intake.ts';
import { type GoalSchedule, session, type StoredAgent } from '../activities/store/schema.ts';
import type { WakeArgs } from '../workflows/messages.ts';
import { onStore, SessionClosed } from './faults.ts';
import type { CreatedGoal, GoalDeps, Identity, NewGoalRequest } from './new-goal.ts';
import { refuseBadId } from './own-id.ts';
import { findJob } from './read-jobs.ts';
import { isTemplate, oneAtATime, storeRecurring } from './recurring.ts';
import { scheduleFault } from './schedule-spec.ts';

/** Stores the goal, and its session where it needs one, then tells the engine. Throws BadId and SessionClosed. */
export async function createGoal(deps: GoalDeps, request: NewGoalRequest): Promise<CreatedGoal> {
  const { tenant, key, by: _, ...body } = request;
  refuseBadId(key);
  const fingerprint = contentHash(body);
  const id = `goal_${sha256('goal', tenant, key).slice(0, 32)}`;
  const { schedule } = request;
  const fault = schedule ? scheduleFault(schedule) : null;
  if (fault !== null) return { kind: 'refused', why: fault };
  const own = { id, fingerprint };
  const isRecurring = schedule !== undefined && request.session === undefined;
  const created = await onStore(async () =>
    isRecurring ? await storeRecurring(deps, { ...request, schedule }, own) : await storeOne(deps, request, own),
  );
  if (created.kind !== 'accepted') return created;
  // Before the goal begins: its end takes the Schedule away.
  if (schedule) await scheduleIt(deps, { target: isRecurring ? 'template' : 'goal', id }, schedule);
  if (!isRecurring) await deps.engine.lookGoal(id);
  return created;
}

/** What has ended, be it meanwhile, fires no more. */
async function scheduleIt({ db, engine }: GoalDeps, args: WakeArgs, schedule: GoalSchedule): Promise<void> {
  if (await onStore(() => isOver(db, args))) return;
  await engine.schedule(args, schedule);
  if (await onStore(() => isOver(db, args))) await engine.changeSchedule(args.id, 'cancel');
}

async function storeOne(deps: GoalDeps, request: NewGoalRequest, own: Identity): Promise<CreatedGoal> {
  const { tenant, session: named } = request;
  const owner = named === undefined ? null : await sessionOf(deps.db, tenant, named);
  return await oneAtATime(deps.db, own.id, async (tx) => {
    const before = await findGoal(tx, own.id);
    if (before) return asKnown(before, own.fingerprint);
    if (await isTemplate(tx, own.id)) return { kind: 'conflict', goal: own.id };
    return await storeNew(deps, tx, { ...request, owner }, own);
  });
}

function asKnown(row: GoalRow, fingerprint: string): CreatedGoal {
  if (row.fingerprint !== fingerprint) return { kind: 'conflict', goal: row.id };
  return { kind: 'accepted', goal: row.id, session: row.session, isNew: false };
}

async function storeNew(
  deps: GoalDeps,
  tx: Tx,
  request: NewGoalRequest & { readonly owner: Owner | null },
  own: Identity,
): Promise<CreatedGoal> {
  const { tenant, objective, by, owner } = request;
  if (owner) await refuseClosed(tx, owner.id);
  if (request.session !== undefined && !owner) return { kind: 'unknown_session' };
  // A session keeps the agent that it began with.
  const agent = owner ? await agentOf(tx, owner.agent) : deps.catalogue.agent(request.agent);
  if (!agent) return { kind: 'unknown_agent', asked: request.agent ?? '', known: deps.catalogue.names };
  const planned = planGoal(agent, request, deps.catalogue.toolCheck);
  if (planned.kind === 'refused') return planned;
  const common = { ...own, ...planned.goal, tenant, objective, by };
  if (!owner) return await storeWithSession(deps.catalogue, tx, { ...request, agent }, common);
  return answerOf(await storeGoal(tx, { ...common, session: owner.id }), own.id, owner.id);
}

/** While the lock is held nobody archives it. */
async function refuseClosed(tx: Tx, id: string): Promise<void> {
  await tx.select({ id: session.id }).from(session).where(eq(session.id, id)).for('share');
  const why = await closedBy(tx, id);
  if (why !== null) throw new SessionClosed(why);
}

async function storeWithSession(
  catalogue: GoalDeps['catalogue'],
  tx: Tx,
  { tenant, agent, workspace }: Omit<NewGoalRequest, 'agent'> & { readonly agent: StoredAgent },
  common: Omit<NewGoal, 'session'>,
): Promise<CreatedGoal> {
  const found = catalogue.workspace(workspace, common.id);
  if (!found.ok) return { kind: 'refused', why: found.why };
  const owner = newId('ses');
  await insertSession(tx, { id: owner, tenant, agent, workspace: found.workspace, title: null });
  return answerOf(await storeGoal(tx, { ...common, session: owner }), common.id, owner);
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
