import { sql } from 'drizzle-orm';
import { bigserial, boolean, index, integer, jsonb, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import type { Decider, EndDetail, EndPhase, EndReason, Signal } from '../../../workflows/core/ends.ts';
import type { InputClass, InputKind, InputStatus } from '../../../workflows/core/inputs.ts';
import type { CancelAnswer } from '../../../workflows/core/journal.ts';
import type { Usage } from '../../../workflows/core/sample-outcome.ts';
import type { StructuredOutput } from '../stored.ts';
import { created, int8, pawl, when } from './columns.ts';
import { tenant, agent, outputSchema, toolList } from './definitions.ts';

export const session = pawl.table(
  'session',
  {
    id: text('id').primaryKey(),
    tenant: text('tenant')
      .notNull()
      .references(() => tenant.id),
    /** The root session's id: events of a whole family share one stream. */
    stream: text('stream').notNull(),
    parent: text('parent'),
    agent: text('agent')
      .notNull()
      .references(() => agent.hash),
    head: text('head').notNull(),
    eventSeq: int8('event_seq').notNull().default(0),
    state: text('state').$type<'open' | 'archived'>().notNull().default('open'),
    title: text('title'),
    /** Where a fork was taken: the session, and the message that was its head. */
    forkedFrom: text('forked_from'),
    forkedAt: text('forked_at'),
    /** While set, only readers and writes to the plan file run. */
    plan: boolean('plan').notNull().default(false),
    workspaceKind: text('workspace_kind').$type<'host' | 'shared'>().notNull(),
    workspacePath: text('workspace_path').notNull(),
    workspaceQueue: text('workspace_queue').notNull(),
    createdAt: created(),
  },
  (t) => [index('session_by_tenant').on(t.tenant, t.createdAt, t.id)],
);

export const input = pawl.table(
  'input',
  {
    id: text('id').primaryKey(),
    session: text('session')
      .notNull()
      .references(() => session.id),
    seq: bigserial('seq', { mode: 'number' }).notNull(),
    kind: text('kind').$type<InputKind>().notNull(),
    class: text('class').$type<InputClass>().notNull(),
    body: text('body').notNull(),
    /** Who sent it: a token, a person, a goal. */
    sender: text('sender'),
    /** Hash of what came in under this id; the body may be edited since. */
    fingerprint: text('fingerprint'),
    status: text('status').$type<InputStatus>().notNull().default('queued'),
    /** The turn it was promoted for or forwarded to. */
    turn: text('turn'),
    /** The message it became. */
    message: text('message'),
    /** The ended turn whose work goes on with it, by itself. */
    continues: text('continues'),
    /** A turn had it and ended without it: it goes first next time. */
    isLeftOver: boolean('is_left_over').notNull().default(false),
    dispatchedAt: when('dispatched_at'),
    /** Who took it out of the queue, and what they said: for those that no turn consumes. */
    droppedBy: text('dropped_by'),
    droppedWhy: text('dropped_why'),
    droppedAt: when('dropped_at'),
    editLockBy: text('edit_lock_by'),
    editLockUntil: when('edit_lock_until'),
    createdAt: created(),
  },
  (t) => [
    index('input_waiting').on(t.session, t.class, t.seq).where(sql`${t.status} in ('queued', 'forwarded')`),
    uniqueIndex('input_continues').on(t.continues).where(sql`${t.continues} is not null`),
    index('input_undispatched').on(t.createdAt).where(sql`${t.dispatchedAt} is null and ${t.status} = 'queued'`),
  ],
);

export const turn = pawl.table(
  'turn',
  {
    id: text('id').primaryKey(),
    session: text('session')
      .notNull()
      .references(() => session.id),
    n: integer('n').notNull(),
    generation: integer('generation').notNull().default(0),
    baseHead: text('base_head').notNull(),
    head: text('head').notNull(),
    input: text('input')
      .notNull()
      .references(() => input.id),
    /** The input whose work this is: its own, or, where the answer to a wait opened it, that of the turn that waited. */
    origin: text('origin')
      .notNull()
      .references(() => input.id),
    agent: text('agent')
      .notNull()
      .references(() => agent.hash),
    tools: text('tools')
      .notNull()
      .references(() => toolList.hash),
    /** What this turn's answer has to fit. */
    outputSchema: text('output_schema').references(() => outputSchema.hash),
    openedAt: when('opened_at').notNull().default(sql`clock_timestamp()`),
    endedAt: when('ended_at'),
    endReason: text('end_reason').$type<EndReason>(),
    endDetail: text('end_detail').$type<EndDetail>(),
    endDecidedBy: text('end_decided_by').$type<Decider>(),
    endSignal: jsonb('end_signal').$type<Signal>(),
    endPhase: text('end_phase').$type<EndPhase>(),
    endStep: integer('end_step'),
    /** Null where recovery has written the end. */
    endRunningMs: int8('end_running_ms'),
    endUsage: jsonb('end_usage').$type<Usage>(),
    endStructuredOutput: jsonb('end_structured_output').$type<StructuredOutput>(),
    endContract: text('end_contract').$type<'met' | 'unmet'>(),
    endResumeAt: when('end_resume_at'),
    endBy: text('end_by'),
    endWhy: text('end_why'),
    recordedBy: text('recorded_by').$type<'turn' | 'recovery'>(),
  },
  (t) => [
    uniqueIndex('turn_of_session').on(t.session, t.n),
    index('turn_by_origin').on(t.origin, t.n),
    uniqueIndex('turn_open').on(t.session).where(sql`${t.endedAt} is null`),
  ],
);

/** Engine runs that have committed to a turn, and the generation each belongs to: the fence. */
export const turnRun = pawl.table(
  'turn_run',
  {
    turn: text('turn')
      .notNull()
      .references(() => turn.id),
    run: text('run').notNull(),
    generation: integer('generation').notNull(),
    createdAt: created(),
  },
  (t) => [primaryKey({ columns: [t.turn, t.run] })],
);

export const cancel = pawl.table(
  'cancel',
  {
    seq: bigserial('seq', { mode: 'number' }).primaryKey(),
    id: text('id').notNull().unique(),
    turn: text('turn')
      .notNull()
      .references(() => turn.id),
    by: text('by').notNull(),
    why: text('why'),
    decidedBy: text('decided_by').$type<Decider>().notNull(),
    detail: text('detail').$type<EndDetail>().notNull(),
    answer: text('answer').$type<CancelAnswer>(),
    createdAt: created(),
  },
  (t) => [index('cancel_of_turn').on(t.turn, t.seq)],
);

export const job = pawl.table(
  'job',
  {
    id: text('id').primaryKey(),
    tenant: text('tenant')
      .notNull()
      .references(() => tenant.id),
    session: text('session')
      .notNull()
      .references(() => session.id),
    input: text('input')
      .notNull()
      .references(() => input.id),
    key: text('idempotency_key').notNull(),
    fingerprint: text('fingerprint').notNull(),
    ticket: text('ticket'),
    outputSchema: text('output_schema').references(() => outputSchema.hash),
    /** The job is done when this goal is. */
    goal: text('goal'),
    createdAt: created(),
  },
  (t) => [
    uniqueIndex('job_by_key').on(t.tenant, t.key),
    index('job_by_tenant').on(t.tenant, t.createdAt, t.id),
    index('job_by_input').on(t.input),
  ],
);
