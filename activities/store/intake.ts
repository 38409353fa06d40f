import { and, eq, inArray, sql } from 'drizzle-orm';
import { classOf, type InputKind } from '../../workflows/core/inputs.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Db, Tx } from './database.ts';
import { isUniqueViolation } from './errors.ts';
import { recordEvents } from './events.ts';
import { hasEnded } from './sub-agents.ts';
import { bringsGoal, type NewGoal, storeGoal } from './goals.ts';
import { contentHash, rootHash, storable, storableDeep } from './hash.ts';
import { newId } from './ids.ts';
import { storeSchema } from './definitions.ts';
import { planEvent } from './plan.ts';
import { isUnlocked } from './queued.ts';
import { agent, input, job, type OutputSchema, type StoredAgent, session } from './schema.ts';

export interface Workspace {
  readonly kind: 'host' | 'shared';
  /** Absolute path on the machine (or the mount) that has the files. */
  readonly path: string;
  /** Task queue of the workers that reach it. */
  readonly queue: string;
}

export interface NewJob {
  readonly tenant: string;
  /** The caller's Idempotency-Key, scoped to the tenant. */
  readonly key: string;
  /** Hash of what was asked; the same key with another one is a conflict. */
  readonly fingerprint: string;
  readonly agent: StoredAgent;
  readonly workspace: Workspace;
  readonly text: string;
  readonly ticket: string | null;
  /** What the answer has to fit; checked by whoever takes the job in. */
  readonly outputSchema?: OutputSchema | undefined;
  readonly sender: string | null;
  /** The session plans from its first turn on. */
  readonly plan?: boolean;
  /** The job is done when this goal is. */
  readonly goal?: Omit<NewGoal, 'id' | 'firstRound' | 'tenant' | 'session' | 'by' | 'fingerprint'> | undefined;
}

export interface AcceptedJob {
  readonly job: string;
  readonly session: string;
  readonly input: string;
  /** False when the key had brought this job before. */
  readonly isNew: boolean;
}

export type SubmitResult =
  | ({ readonly kind: 'accepted' } & AcceptedJob)
  | { readonly kind: 'key_used_for_another_body'; readonly job: string };

/** Stores a job, its session and its first input in one transaction; the same key gives the same job. */
export async function storeJob(db: Db, request: NewJob): Promise<SubmitResult> {
  const before = await findByKey(db, request);
  if (before) return before;
  try {
    const accepted = await db.transaction((tx) => insertJob(tx, request));
    return { kind: 'accepted', ...accepted };
  } catch (error) {
    if (!isUniqueViolation(error, 'job_by_key')) throw error;
    const winner = await findByKey(db, request);
    if (!winner) throw error;
    return winner;
  }
}

async function findByKey(db: Db, request: NewJob): Promise<SubmitResult | null> {
  const [row] = await db
    .select()
    .from(job)
    .where(and(eq(job.tenant, request.tenant), eq(job.key, request.key)));
  if (!row) return null;
  if (row.fingerprint !== request.fingerprint) return { kind: 'key_used_for_another_body', job: row.id };
  return { kind: 'accepted', job: row.id, session: row.session, input: row.input, isNew: false };
}

async function insertJob(tx: Tx, request: NewJob): Promise<AcceptedJob> {
  const ids = { job: newId('job'), session: newId('ses'), input: newId('in') };
  await insertSession(tx, { ...request, id: ids.session, title: request.ticket });
  await tx.insert(input).values({
    id: ids.input,
    session: ids.session,
    kind: 'prompt',
    class: classOf('prompt'),
    body: storable(request.text),
    sender: request.sender,
  });
  await tx.insert(job).values({
    id: ids.job,
    tenant: request.tenant,
    session: ids.session,
    input: ids.input,
    key: request.key,
    fingerprint: request.fingerprint,
    ticket: request.ticket,
    outputSchema: request.outputSchema ? await storeSchema(tx, storableDeep(request.outputSchema)) : null,
    goal: request.goal ? goalIdOf(ids.job) : null,
  });
  if (request.goal) {
    const { tenant, fingerprint, sender: by } = request;
    const goal = { ...request.goal, id: goalIdOf(ids.job) };
    await storeGoal(tx, { ...goal, tenant, session: ids.session, by, fingerprint, firstRound: 'queued' });
    await bringsGoal(tx, goal, ids.input);
  }
  await recordEvents(tx, ids.session, [
    {
      key: `job/${ids.job}`,
      turn: null,
      event: { kind: 'job.submitted', layer: 'driver', job: ids.job, input: ids.input },
    },
    ...(request.plan ? [planEvent(true, request.sender)] : []),
  ]);
  return { ...ids, isNew: true };
}

/** The goal that a job brings has the job's own id, as a goal. */
export function goalIdOf(job: string): string {
  return job.replace(/^job_/, 'goal_');
}

export interface NewSession {
  readonly id: string;
  readonly tenant: string;
  readonly agent: StoredAgent;
  readonly workspace: Workspace;
  readonly title: string | null;
  readonly plan?: boolean;
}

/** A conversation without a word in it, pinned to an agent and a workspace. */
export async function insertSession(
  tx: Tx,
  { id, tenant, agent: pinned, workspace, title, plan }: NewSession,
): Promise<void> {
  const hash = contentHash(pinned);
  await tx.insert(agent).values({ hash, name: pinned.name, definition: pinned }).onConflictDoNothing();
  await tx.insert(session).values({
    id,
    tenant,
    stream: id,
    agent: hash,
    head: rootHash(tenant, id),
    title,
    plan: plan === true,
    workspaceKind: workspace.kind,
    workspacePath: workspace.path,
    workspaceQueue: workspace.queue,
  });
}

export interface NewInput {
  readonly id: string;
  readonly session: string;
  readonly kind: InputKind;
  readonly text: string;
  readonly sender: string | null;
}

export type InputStored =
  | 'accepted'
  /** This id had brought it before. */
  | 'known'
  /** This id had brought something else before. */
  | 'conflict'
  | 'archived'
  /** It is a sub-agent's, which ends with its first turn. */
  | 'agent_ended'
  /** Too many wait. */
  | 'full';

/** Stores an input for a session; the same id again is the same input, whatever has become of it. */
export async function storeInput(db: Db, request: NewInput): Promise<InputStored> {
  return await db.transaction(async (tx) => {
    // Senders to one session count one after another, so that the last place is given once.
    const [owner] = await tx
      .select({ state: session.state })
      .from(session)
      .where(eq(session.id, request.session))
      .for('no key update');
    const fingerprint = fingerprintOf(request);
    const [known] = await tx.select().from(input).where(eq(input.id, request.id));
    if (known) {
      const before = known.fingerprint ?? fingerprintOf({ ...known, text: known.body });
      return before === fingerprint ? 'known' : 'conflict';
    }
    if (await hasEnded(tx, request.session)) return 'agent_ended';
    if (owner?.state === 'archived') return 'archived';
    const waiting = await tx.$count(input, and(eq(input.session, request.session), eq(input.status, 'queued')));
    if (waiting >= POLICY.session.queueMax) return 'full';
    const stored = await insertInput(tx, { ...request, fingerprint });
    if (stored.length === 0) return 'conflict';
    const { id, kind: source, sender: by } = request;
    await recordEvents(tx, request.session, [
      {
        key: `input/${id}`,
        turn: null,
        event: { kind: 'input.accepted', layer: 'driver', input: id, source, by },
      },
    ]);
    return 'accepted';
  });
}

function fingerprintOf({ session: owner, kind, text }: Pick<NewInput, 'session' | 'kind' | 'text'>): string {
  return contentHash([owner, kind, storable(text)]);
}

/** `turn`: it is handed to that running turn directly; `continues`: the work of that ended turn goes on with it. */
export async function insertInput(
  tx: Tx,
  request: NewInput & { readonly turn?: string; readonly continues?: string; readonly fingerprint?: string },
): Promise<readonly { id: string }[]> {
  const { id, session: owner, kind, text, sender, turn: running, continues, fingerprint } = request;
  const bound =
    running === undefined ? {} : { status: 'forwarded' as const, turn: running, dispatchedAt: sql`clock_timestamp()` };
  return await tx
    .insert(input)
    .values({
      id,
      session: owner,
      kind,
      class: classOf(kind),
      body: storable(text),
      sender,
      continues,
      fingerprint,
      ...bound,
    })
    .onConflictDoNothing()
    .returning({ id: input.id });
}

/** The engine has taken the notice about these inputs: the sweeper need not repeat it, but for one that is locked now. */
export async function markDispatched(db: Db, ids: readonly string[]): Promise<void> {
  await db
    .update(input)
    .set({ dispatchedAt: sql`clock_timestamp()` })
    .where(and(inArray(input.id, [...ids]), isUnlocked));
}
