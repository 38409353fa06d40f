import { sql } from 'drizzle-orm';
import { boolean, index, integer, jsonb, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import type { GoalCommand } from '../../../workflows/core/goal/goal-event.ts';
import type { RoundLimits } from '../../../workflows/core/goal/goal-limits.ts';
import type { GoalBudget, GoalState } from '../../../workflows/core/goal/goal-state.ts';
import { created, pawl, when } from './columns.ts';
import { tenant, agent } from './definitions.ts';
import { session, input } from './sessions.ts';

/** What says that the goal is reached; harmless to repeat. */
export type GoalCheck = CommandCheck | ToolCheck;

/** A command line, run in the workspace: exit code 0. */
export interface CommandCheck {
  readonly command: string;
  readonly timeoutSeconds: number;
}

/** A call of one of the agent's tools that reads, or that has the same end however often it is made: it succeeds. */
export interface ToolCheck {
  readonly tool: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly timeoutSeconds: number;
  /**
   * What the result has to be: a text is all of it, but for space around it; any other value is found in it as JSON,
   * where an object may have more fields than are named here.
   */
  readonly expect?: unknown;
}

/** Who judges; the agent's own model where nothing is said. */
export interface GoalJudge {
  readonly provider?: string;
  readonly model?: string;
}

/** A reading copy; the goal workflow is the truth. What it was asked for (objective, checks, judge) is the store's. */
export const goal = pawl.table(
  'goal',
  {
    id: text('id').primaryKey(),
    tenant: text('tenant')
      .notNull()
      .references(() => tenant.id),
    session: text('session')
      .notNull()
      .references(() => session.id),
    objective: text('objective').notNull(),
    /** Counts the objectives it has had. */
    version: integer('version').notNull().default(1),
    checks: jsonb('checks').$type<readonly GoalCheck[]>().notNull(),
    judge: jsonb('judge').$type<GoalJudge>().notNull(),
    /** As a word: `paused(user)`. */
    status: text('status').notNull(),
    isFinal: boolean('is_final').notNull().default(false),
    state: jsonb('state').$type<GoalState>().notNull(),
    /** The recurring goal that it is a round of, and the time of that firing. */
    template: text('template'),
    /** Of the request that brought it: the same key with another one is a conflict. */
    fingerprint: text('fingerprint').notNull(),
    createdBy: text('created_by'),
    createdAt: created(),
    changedAt: when('changed_at').notNull().default(sql`clock_timestamp()`),
  },
  (t) => [
    uniqueIndex('goal_open').on(t.session).where(sql`not ${t.isFinal}`),
    index('goal_by_tenant').on(t.tenant, t.createdAt, t.id),
    index('goal_of_template').on(t.template).where(sql`${t.template} is not null`),
  ],
);

/** The input that a round of a goal is, and what its turn may use at most. Round 0 is the job that brought the goal. */
export const goalRound = pawl.table(
  'goal_round',
  {
    goal: text('goal')
      .notNull()
      .references(() => goal.id),
    round: integer('round').notNull(),
    input: text('input')
      .notNull()
      .unique()
      .references(() => input.id),
    limits: jsonb('limits').$type<RoundLimits>().notNull(),
    createdAt: created(),
  },
  (t) => [primaryKey({ columns: [t.goal, t.round] })],
);

/** What somebody told a goal, or a recurring one, to do; a new objective lies here before the goal is told. */
export const goalCommand = pawl.table(
  'goal_command',
  {
    goal: text('goal').notNull(),
    id: text('id').notNull(),
    kind: text('kind').$type<GoalCommand['kind']>().notNull(),
    /** What is asked, but for who and why: the same id with something else is a conflict. */
    fingerprint: text('fingerprint').notNull(),
    budget: jsonb('budget').$type<Partial<GoalBudget>>(),
    objective: text('objective'),
    checks: jsonb('checks').$type<readonly GoalCheck[]>(),
    by: text('by'),
    why: text('why'),
    answer: text('answer'),
    /** When its objective and checks took the place of those before. */
    appliedAt: when('applied_at'),
    createdAt: created(),
  },
  (t) => [primaryKey({ columns: [t.goal, t.id] })],
);

/** What was found of a turn, once for each try: checks, the judge, sceptics, the stop gate. */
export const goalVerdict = pawl.table(
  'goal_verdict',
  {
    key: text('key').primaryKey(),
    goal: text('goal')
      .notNull()
      .references(() => goal.id),
    turn: text('turn').notNull(),
    source: text('source').$type<'checks' | 'judge' | 'sceptic' | 'stop_gate'>().notNull(),
    /** What the workflow was told. */
    told: jsonb('told').notNull(),
    /** What the next directive says of it. */
    text: text('text').notNull(),
    nextStep: text('next_step'),
    createdAt: created(),
  },
  (t) => [index('goal_verdict_of_goal').on(t.goal, t.createdAt)],
);

export type CalendarField = 'second' | 'minute' | 'hour' | 'dayOfMonth' | 'month' | 'dayOfWeek' | 'year';

/** When a recurring goal begins anew, in the engine's own terms. */
export type GoalSchedule = { readonly timezone?: string | undefined; readonly paused?: boolean | undefined } & (
  | { readonly everySeconds: number }
  | { readonly cron: string }
  | { readonly calendar: Readonly<Partial<Record<CalendarField, string | number | undefined>>> }
);

/** What each firing of a recurring goal begins with; immutable but for its end. */
export const goalTemplate = pawl.table('goal_template', {
  id: text('id').primaryKey(),
  tenant: text('tenant')
    .notNull()
    .references(() => tenant.id),
  agent: text('agent')
    .notNull()
    .references(() => agent.hash),
  workspaceKind: text('workspace_kind').$type<'host' | 'shared'>().notNull(),
  workspacePath: text('workspace_path').notNull(),
  workspaceQueue: text('workspace_queue').notNull(),
  objective: text('objective').notNull(),
  checks: jsonb('checks').$type<readonly GoalCheck[]>().notNull(),
  judge: jsonb('judge').$type<GoalJudge>().notNull(),
  budget: jsonb('budget').$type<GoalBudget>().notNull(),
  sceptics: integer('sceptics').notNull(),
  schedule: jsonb('schedule').$type<GoalSchedule>().notNull(),
  fingerprint: text('fingerprint').notNull(),
  createdBy: text('created_by'),
  createdAt: created(),
  endedAt: when('ended_at'),
});

/** `cancelled`: the recurring goal was over by then. */
export type FiringOutcome = 'started' | 'skipped' | 'superseded' | 'cancelled';

/** Each time at which a recurring goal was to begin, and what became of it. */
export const goalFiring = pawl.table(
  'goal_firing',
  {
    template: text('template')
      .notNull()
      .references(() => goalTemplate.id),
    /** The time it was meant for. */
    slot: when('slot').notNull(),
    outcome: text('outcome').$type<FiringOutcome>().notNull(),
    /** The goal that it began, or the one that stood in its way. */
    goal: text('goal'),
    createdAt: created(),
  },
  (t) => [primaryKey({ columns: [t.template, t.slot] })],
);

export type WakeOutcome = 'fired' | 'recorded' | 'superseded';

/** `event`: something that was reported to the goal's session. */
export type WakeSource = 'api' | 'schedule' | 'event';

/** Each wake-up of a goal; without an outcome it waits to be heard. */
export const wake = pawl.table(
  'wake',
  {
    id: text('id').primaryKey(),
    goal: text('goal')
      .notNull()
      .references(() => goal.id),
    /** The sender's own id: the same one again is the same wake. */
    key: text('key').notNull(),
    source: text('source').$type<WakeSource>().notNull(),
    event: text('event'),
    by: text('by'),
    outcome: text('outcome').$type<WakeOutcome>(),
    why: text('why'),
    settledAt: when('settled_at'),
    createdAt: created(),
  },
  (t) => [
    uniqueIndex('wake_once').on(t.goal, t.key),
    index('wake_unsettled').on(t.goal, t.createdAt).where(sql`${t.outcome} is null`),
  ],
);
