import type { Client } from '@temporalio/client';
import type { Database } from '../activities/store/database.ts';
import type { StreamListener } from '../activities/store/notify.ts';
import {
  type ApprovalAnswered,
  type ApprovalReply,
  listApprovals,
  type OpenApproval,
  replyToApproval,
} from './approvals.ts';
import { runningAgents, type ShownAgent } from './agents.ts';
import { cancelAgent } from './cancel-agent.ts';
import { type CancelJob, type CancelledJob, cancelJob } from './cancel.ts';
import { type CostReport, costOf, costOfInput } from './cost.ts';
import { ANSWER_LIMIT_MS, clientEngine, type ClientEngine, type EngineState } from './engine.ts';
import { EngineAway, onStore } from './faults.ts';
import { createGoal } from './create-goal.ts';
import { type Goal, type GoalWithWakes, listGoals, showGoal } from './goals.ts';
import type { CreatedGoal, NewGoalRequest } from './new-goal.ts';
import {
  type GoalOrder,
  type OrderAnswer,
  orderGoal,
  wakeGoal,
  type WakeRequest,
  type WokenGoal,
} from './goal-orders.ts';
import { listRecurring, type RecurringGoal, type RecurringLine, showRecurring } from './recurring.ts';
import { type PlanState, planSession } from './plan.ts';
import { type FollowRequest, followJob, type RunEvent } from './follow.ts';
import { type InputRuns, inputRuns } from './inputs.ts';
import type { Job, JobEnd } from './job.ts';
import { type OutsideEvent, reportEvent, type ReportedEvent } from './outside-events.ts';
import { findJob, type JobPage, lastWords, listJobs, type ListRequest, openJobs } from './read-jobs.ts';
import { type SessionRuns, sessionRuns } from './sessions.ts';
import { type ShownJob, showJob } from './show.ts';
import type { Why } from './why/report.ts';
import { whyOf } from './why/why.ts';
import { type Catalogue, type Submission, submitJob, type Submitted } from './submit.ts';

export interface RunsOptions {
  readonly database: Database;
  readonly temporal: Client;
  /** Where session workflows run. */
  readonly taskQueue: string;
  readonly catalogue: Catalogue;
  readonly listener: StreamListener;
  /** How long the engine may take to answer, in ms; 5 s if left out. */
  readonly engineLimitMs?: number;
}

/** A job that is not done, with what the engine says of its turn; null where nothing should be running. */
export interface OpenJob {
  readonly job: Job;
  readonly engine: EngineState | 'away' | null;
  /** Whether store and engine tell the same; where not, recovery is about to settle it. */
  readonly agrees: boolean;
  /** Its sub-agents that run now. */
  readonly agents: readonly ShownAgent[];
}

/** A job with the model's last words, once its turn has ended, and what it has cost so far. */
export type JobWithResult = Job & { readonly text: string | null; readonly cost: CostReport };

/** Everything one can do with jobs. Another tenant's id looks like an unknown one: null. */
export interface Runs extends InputRuns, SessionRuns {
  submit(submission: Submission): Promise<Submitted>;
  get(tenant: string, job: string): Promise<JobWithResult | null>;
  list(tenant: string, request?: ListRequest): Promise<JobPage>;
  events(tenant: string, job: string, request?: FollowRequest): AsyncGenerator<RunEvent, JobEnd | null, void>;
  /** Of a sub-agent too, by its session: whoever started it goes on. */
  cancel(tenant: string, jobOrAgent: string, request: CancelJob): Promise<CancelledJob | null>;
  show(tenant: string, job: string): Promise<ShownJob | null>;
  /** Why a turn, a job or a session is as it is, and what to do now. */
  why(tenant: string, id: string): Promise<Why | null>;
  /** What a job or a session has cost so far, by model. */
  cost(tenant: string, jobOrSession: string): Promise<CostReport | null>;
  /** Calls that wait for a person, oldest first. */
  approvals(tenant: string): Promise<readonly OpenApproval[]>;
  answer(tenant: string, approval: string, reply: ApprovalReply): Promise<ApprovalAnswered | null>;
  /** Sets or takes away a session's plan flag, for calls that begin after it. */
  plan(
    tenant: string,
    session: string,
    request: { readonly plan: boolean; readonly by: string },
  ): Promise<PlanState | null>;
  /** Reports an event to a session (or to that of a job): it ends every open wait for its name. Throws SessionClosed. */
  report(tenant: string, sessionOrJob: string, event: OutsideEvent): Promise<ReportedEvent | null>;
  createGoal(request: NewGoalRequest): Promise<CreatedGoal>;
  goal(tenant: string, goal: string): Promise<GoalWithWakes | null>;
  /** A recurring goal and its firings. */
  recurring(tenant: string, goal: string): Promise<RecurringGoal | null>;
  /** Newest first; `open`: those that are not final. */
  goals(tenant: string, request?: { readonly open?: boolean | undefined }): Promise<readonly Goal[]>;
  /** Recurring ones, newest first; `open`: those that are not cancelled. */
  recurringGoals(tenant: string, request?: { readonly open?: boolean | undefined }): Promise<readonly RecurringLine[]>;
  /** Pauses, resumes, edits or cancels a goal; the answer is the status it has then. */
  orderGoal(tenant: string, goal: string, order: GoalOrder): Promise<OrderAnswer | null>;
  wakeGoal(tenant: string, goal: string, request: WakeRequest): Promise<WokenGoal | 'recurring' | null>;
  ps(tenant: string): Promise<readonly OpenJob[]>;
  /** Throws StoreAway or EngineAway where one of the two does not answer. */
  check(): Promise<void>;
}

/** The facade that the API, the command line and programs stand on. It holds nothing open of its own. */
export function createRuns(options: RunsOptions): Runs {
  const { database, temporal, taskQueue, catalogue, listener, engineLimitMs = ANSWER_LIMIT_MS } = options;
  const { db } = database;
  const engine = clientEngine(temporal, taskQueue, engineLimitMs);
  return {
    submit: (submission) => submitJob({ db, engine, catalogue }, submission),
    get: (tenant, id) =>
      onStore(async () => {
        const found = await findJob(db, tenant, id);
        if (!found) return null;
        const text = await lastWords(db, found.job.end ? found.head : null);
        return { ...found.job, text, cost: await costOfInput(db, found.input) };
      }),
    list: (tenant, request = {}) => onStore(() => listJobs(db, tenant, request)),
    events: (tenant, job, request = {}) => followJob({ db, listener }, { tenant, job }, request),
    cancel: async (tenant, id, request) =>
      (await cancelJob({ db, engine, catalogue }, { tenant, job: id }, request)) ??
      (await cancelAgent({ db, engine }, { tenant, agent: id }, request)),
    show: (tenant, id) =>
      onStore(async () => {
        const found = await findJob(db, tenant, id);
        return found && (await showJob(db, found));
      }),
    why: (tenant, id) => whyOf({ db, engine, taskQueue }, tenant, id),
    cost: (tenant, id) => onStore(() => costOf(db, tenant, id)),
    approvals: (tenant) => listApprovals(db, tenant),
    answer: (tenant, approval, reply) => replyToApproval({ db, engine }, { tenant, approval }, reply),
    plan: (tenant, session, request) => planSession(db, { tenant, session, ...request }),
    report: (tenant, of, event) => reportEvent({ db, engine }, { tenant, of }, event),
    ...inputRuns({ db, engine }),
    ...sessionRuns(db),
    createGoal: (request) => createGoal({ db, engine, catalogue }, request),
    goal: (tenant, id) => onStore(() => showGoal(db, tenant, id)),
    recurring: (tenant, id) => onStore(() => showRecurring(db, tenant, id)),
    goals: (tenant, request) => onStore(() => listGoals(db, tenant, request)),
    recurringGoals: (tenant, request) => onStore(() => listRecurring(db, tenant, request)),
    orderGoal: (tenant, id, order) => orderGoal({ db, engine, catalogue }, { tenant, goal: id }, order),
    wakeGoal: (tenant, id, request) => wakeGoal({ db, engine }, { tenant, goal: id }, request),
    async ps(tenant) {
      const jobs = await onStore(() => openJobs(db, tenant));
      const sessions = jobs.map(({ session }) => session);
      const running = await onStore(() => runningAgents(db, sessions));
      return await inGroups(jobs, async (job) => ({
        ...(await compare(engine, job)),
        agents: running.get(job.session) ?? [],
      }));
    },
    async check() {
      await onStore(() => db.execute('select 1'));
      await engine.check();
    },
  };
}

async function compare(engine: ClientEngine, job: Job): Promise<Omit<OpenJob, 'agents'>> {
  // One that goes on by itself has no turn just now.
  if (job.state !== 'running' || job.turn === null || job.end) return { job, engine: null, agrees: true };
  try {
    const state = await engine.stateOf(job.turn);
    return { job, engine: state, agrees: state === 'running' };
  } catch (error) {
    if (!(error instanceof EngineAway)) throw error;
    return { job, engine: 'away', agrees: false };
  }
}

const AT_ONCE = 10;

async function inGroups<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<readonly R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += AT_ONCE) {
    results.push(...(await Promise.all(items.slice(at, at + AT_ONCE).map(work))));
  }
  return results;
}
