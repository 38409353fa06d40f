import { and, eq } from 'drizzle-orm';
import type { Db } from '../activities/store/database.ts';
import { contentHash, storable } from '../activities/store/hash.ts';
import { goalIdOf, markDispatched, storeJob, type SubmitResult, type Workspace } from '../activities/store/intake.ts';
import { job, type StoredAgent } from '../activities/store/schema.ts';
import type { ClientEngine } from './engine.ts';
import { onStore } from './faults.ts';
import { refuseBadId } from './own-id.ts';
import { type GoalWish, type JudgeCheck, planGoal } from '../activities/store/goal-plan.ts';

/** What a submitter may name; the config fills it. */
export interface Catalogue {
  readonly names: readonly string[];
  /** Whether answers can be judged by this JSON Schema; `why` says what to do. */
  outputSchema(schema: unknown): { readonly ok: true } | { readonly ok: false; readonly why: string };
  /** The agent of that name, or the default one. */
  agent(name: string | undefined): StoredAgent | null;
  /** Whether a tool may check the goals of an agent. */
  toolCheck: JudgeCheck;
  workspace(
    path: string | undefined,
    jobKey: string,
  ): { readonly ok: true; readonly workspace: Workspace } | { readonly ok: false; readonly why: string };
}

export interface Submission {
  readonly tenant: string;
  /** The caller's own key: the same key with the same body is the same job, for ever. */
  readonly key: string;
  readonly text: string;
  readonly agent?: string | undefined;
  readonly ticket?: string | undefined;
  /** A folder under the workspace root; one of its own if left out. */
  readonly workspace?: string | undefined;
  /** Plan first: nothing but PLAN.md may be changed until somebody says otherwise. */
  readonly plan?: boolean | undefined;
  /** What each of its turns may cost, in US dollars; at most what the agent allows. */
  readonly maxUsd?: number | undefined;
  /** JSON Schema of an object that the answer has to fit; the agent's own if left out. */
  readonly outputSchema?: Readonly<Record<string, unknown>> | undefined;
  /** The job is done when this goal is; its objective is the text if left out. */
  readonly goal?: (GoalWish & { readonly objective?: string | undefined }) | undefined;
  /** Who hands it in; not part of the body. */
  readonly sender?: string | undefined;
}

export type Submitted =
  | {
      readonly kind: 'accepted';
      readonly job: string;
      readonly session: string;
      /** False when the key had brought this job before. */
      readonly isNew: boolean;
    }
  | { readonly kind: 'conflict'; readonly job: string }
  | { readonly kind: 'unknown_agent'; readonly asked: string; readonly known: readonly string[] }
  | { readonly kind: 'budget_refused'; readonly why: string }
  | { readonly kind: 'schema_refused'; readonly why: string }
  | { readonly kind: 'workspace_refused'; readonly why: string };

interface SubmitDeps {
  readonly db: Db;
  readonly engine: ClientEngine;
  readonly catalogue: Catalogue;
}

/**
 * Stores the job, then tells the engine; accepted only when the engine has taken it. Throws EngineAway or
 * StoreAway: the row may be there, repeating is safe, and the sweeper tells the engine in any case.
 */
export async function submitJob(deps: SubmitDeps, submission: Submission): Promise<Submitted> {
  refuseBadId(submission.key);
  const stored = await onStore(() => store(deps, submission));
  switch (stored.kind) {
    case 'key_used_for_another_body':
      return { kind: 'conflict', job: stored.job };
    case 'accepted':
      await deps.engine.look(stored.session);
      if (submission.goal) await deps.engine.lookGoal(goalIdOf(stored.job));
      // Not marked means told once more by the sweeper, which changes nothing.
      await markDispatched(deps.db, [stored.input]).catch(() => {});
      return { kind: 'accepted', job: stored.job, session: stored.session, isNew: stored.isNew };
    case 'unknown_agent':
    case 'budget_refused':
    case 'schema_refused':
    case 'workspace_refused':
      return stored;
  }
}

type Refused = Extract<
  Submitted,
  { kind: 'unknown_agent' | 'budget_refused' | 'schema_refused' | 'workspace_refused' }
>;

async function store({ db, catalogue }: SubmitDeps, submission: Submission): Promise<SubmitResult | Refused> {
  const { tenant, key, text, sender, maxUsd, outputSchema, plan = false } = submission;
  const body = {
    agent: submission.agent,
    text,
    ticket: submission.ticket,
    workspace: submission.workspace,
    maxUsd,
    ...(plan ? { plan } : {}),
    ...(outputSchema ? { outputSchema } : {}),
    ...(submission.goal ? { goal: submission.goal } : {}),
  };
  const fingerprint = contentHash(body);
  // A repeat is answered before anything is judged: the config may have changed since.
  const before = await findByKey(db, tenant, key, fingerprint);
  if (before) return before;
  const named = catalogue.agent(submission.agent);
  if (!named) return { kind: 'unknown_agent', asked: submission.agent ?? '', known: catalogue.names };
  const budget = withBudget(named, maxUsd);
  if (budget.kind === 'budget_refused') return budget;
  const schema = outputSchema ? catalogue.outputSchema(outputSchema) : null;
  if (schema?.ok === false) return { kind: 'schema_refused', why: schema.why };
  const planned = submission.goal ? planGoal(budget.agent, submission.goal, catalogue.toolCheck) : null;
  if (planned?.kind === 'refused') return { kind: 'budget_refused', why: planned.why };
  const found = catalogue.workspace(submission.workspace, contentHash([tenant, key]));
  if (!found.ok) return { kind: 'workspace_refused', why: found.why };
  const ticket = submission.ticket === undefined ? null : storable(submission.ticket);
  const { workspace } = found;
  const objective = submission.goal?.objective ?? text;
  const goal = planned ? { ...planned.goal, objective } : undefined;
  const facts = { fingerprint, agent: budget.agent, workspace, text, ticket, outputSchema, plan, goal };
  return await storeJob(db, { tenant, key, ...facts, sender: sender ?? null });
}

async function findByKey(db: Db, tenant: string, key: string, fingerprint: string): Promise<SubmitResult | null> {
  const [row] = await db
    .select()
    .from(job)
    .where(and(eq(job.tenant, tenant), eq(job.key, key)));
  if (!row) return null;
  if (row.fingerprint !== fingerprint) return { kind: 'key_used_for_another_body', job: row.id };
  return { kind: 'accepted', job: row.id, session: row.session, input: row.input, isNew: false };
}

type Budgeted =
  | { readonly kind: 'agent'; readonly agent: StoredAgent }
  | Extract<Submitted, { kind: 'budget_refused' }>;

const MICRO = 1_000_000;

/** The agent with the budget of this submission; a budget that could not be kept is refused. */
function withBudget(agent: StoredAgent, maxUsd: number | undefined): Budgeted {
  if (maxUsd === undefined) return { kind: 'agent', agent };
  const maxMicroUsd = Math.round(maxUsd * MICRO);
  // `NaN` and `Infinity` would be kept as null, which is no limit.
  if (!Number.isSafeInteger(maxMicroUsd) || maxMicroUsd <= 0)
    return { kind: 'budget_refused', why: `A maxUsd of ${maxUsd} can't be kept: give a number above 0.` };
  const { name, model, fallback, prices, limits } = agent;
  const unpriced = [model, ...(fallback ? [fallback.model] : [])].find((each) => !prices?.[each]);
  if (unpriced !== undefined) {
    const why = `No price of ${unpriced} is known, so a budget in USD could not be kept: give agent ${name} prices in the config, or leave maxUsd out.`;
    return { kind: 'budget_refused', why };
  }
  if (limits.maxMicroUsd !== null && maxMicroUsd > limits.maxMicroUsd) {
    const why = `Agent ${name} may spend ${limits.maxMicroUsd / MICRO} USD a turn: ask for no more, or raise its maxUsd in the config.`;
    return { kind: 'budget_refused', why };
  }
  return { kind: 'agent', agent: { ...agent, limits: { ...limits, maxMicroUsd } } };
}
