import { sql } from 'drizzle-orm';
import {
  bigint,
  bigserial,
  boolean,
  customType,
  index,
  integer,
  jsonb,
  pgSchema,
  primaryKey,
  text,
  timestamp,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import type { AgentMode } from '../../workflows/core/agents.ts';
import type { Decider, EndDetail, EndPhase, EndReason, Signal } from '../../workflows/core/ends.ts';
import type { InputClass, InputKind, InputStatus } from '../../workflows/core/inputs.ts';
import type { CancelAnswer, JournalEvent, Layer } from '../../workflows/core/journal.ts';
import type { GoalCommand } from '../../workflows/core/goal/goal-event.ts';
import type { RoundLimits } from '../../workflows/core/goal/goal-limits.ts';
import type { GoalBudget, GoalState } from '../../workflows/core/goal/goal-state.ts';
import type { Usage } from '../../workflows/core/sample-outcome.ts';
import type { CallStatus, Effect } from '../../workflows/core/tools.ts';
import type { Message, MessageKind } from '../../workflows/core/transcript.ts';
import type { ApprovalAnswer, Asked, OutputSchema, StoredAgent, StoredTool, StructuredOutput } from './stored.ts';

export type {
  ApprovalAnswer,
  Asked,
  OutcomeAnswer,
  OutputSchema,
  StoredAgent,
  StoredTool,
  StructuredOutput,
} from './stored.ts';

const bytes = customType<{ data: Buffer; driverData: Buffer }>({ dataType: () => 'bytea' });
const when = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' });
const created = () => when('created_at').notNull().default(sql`clock_timestamp()`);
const int8 = (name: string) => bigint(name, { mode: 'number' });

export const pawl = pgSchema('pawl');

export const tenant = pawl.table('tenant', {
  id: text('id').primaryKey(),
  name: text('name').notNull(),
  createdAt: created(),
});

export const token = pawl.table('token', {
  id: text('id').primaryKey(),
  tenant: text('tenant')
    .notNull()
    .references(() => tenant.id),
  hash: text('hash').notNull().unique(),
  scopes: text('scopes').array().notNull(),
  expiresAt: when('expires_at'),
  revokedAt: when('revoked_at'),
  createdAt: created(),
});

/** Immutable, by content hash: a session keeps the definition it was opened with. */
export const agent = pawl.table('agent', {
  hash: text('hash').primaryKey(),
  name: text('name').notNull(),
  definition: jsonb('definition').$type<StoredAgent>().notNull(),
  createdAt: created(),
});

/** What answers have to fit; immutable, by content hash. */
export const outputSchema = pawl.table('output_schema', {
  hash: text('hash').primaryKey(),
  schema: jsonb('schema').$type<OutputSchema>().notNull(),
  createdAt: created(),
});

export const toolList = pawl.table('tool_list', {
  hash: text('hash').primaryKey(),
  tools: jsonb('tools').$type<readonly StoredTool[]>().notNull(),
  createdAt: created(),
});

/** The mark that the shared workspace root of a task queue carries: a worker without it has not the same mount. */
export const sharedRoot = pawl.table('shared_root', {
  taskQueue: text('task_queue').primaryKey(),
  mark: text('mark').notNull(),
  createdAt: created(),
});

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

/** A session that another one has started, and owns; it ends with its first turn. */
export const subAgent = pawl.table(
  'sub_agent',
  {
    session: text('session')
      .primaryKey()
      .references(() => session.id),
    parent: text('parent')
      .notNull()
      .references(() => session.id),
    n: integer('n').notNull(),
    /** The call that asked for it: there is one for each. */
    call: text('call')
      .notNull()
      .unique()
      .references(() => call.key),
    /** The turn that started it. */
    turn: text('turn')
      .notNull()
      .references(() => turn.id),
    /** The input, of the root session, whose work this is. */
    origin: text('origin')
      .notNull()
      .references(() => input.id),
    name: text('name').notNull(),
    mode: text('mode').$type<AgentMode>().notNull(),
    /** What it may spend, with all that it starts itself; null: no limit. */
    leaseTokens: int8('lease_tokens'),
    leaseMicroUsd: int8('lease_micro_usd'),
    /** Set where what started it was stopped, with whoever did that. */
    cancelledAt: when('cancelled_at'),
    cancelBy: text('cancel_by'),
    cancelWhy: text('cancel_why'),
    cancelDecidedBy: text('cancel_decided_by').$type<Decider>(),
    endedAt: when('ended_at'),
    endTurn: text('end_turn').references(() => turn.id),
    /** What the agent that started it is told of its end. */
    report: text('report'),
    /** What it counts against the budgets of the turn that started it, once it has ended. */
    chargedTokens: int8('charged_tokens'),
    chargedMicroUsd: int8('charged_micro_usd'),
    createdAt: created(),
  },
  (t) => [
    uniqueIndex('sub_agent_of_parent').on(t.parent, t.n),
    index('sub_agent_of_turn').on(t.turn),
    index('sub_agent_of_origin').on(t.origin),
    index('sub_agent_running').on(t.parent).where(sql`${t.endedAt} is null`),
    index('sub_agent_ended').on(t.endedAt),
  ],
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

/** Facts for receivers outside the transaction, delivered until acknowledged. */
export const outbox = pawl.table(
  'outbox',
  {
    id: bigserial('id', { mode: 'number' }).primaryKey(),
    receiver: text('receiver').notNull(),
    event: text('event').notNull(),
    body: jsonb('body').notNull(),
    createdAt: created(),
    acknowledgedAt: when('acknowledged_at'),
  },
  (t) => [
    uniqueIndex('outbox_once').on(t.receiver, t.event),
    index('outbox_open').on(t.receiver, t.createdAt).where(sql`${t.acknowledgedAt} is null`),
  ],
);

/** Keyed commits: whoever loses the insert returns the winner's row. */
export const commit = pawl.table('commit', {
  key: text('key').primaryKey(),
  turn: text('turn')
    .notNull()
    .references(() => turn.id),
  run: text('run').notNull(),
  result: jsonb('result').notNull(),
  createdAt: created(),
});

/** One row for each call, readers too. `key` is the effect key: hash(assistant message, ordinal). */
export const call = pawl.table(
  'call',
  {
    key: text('key').primaryKey(),
    turn: text('turn')
      .notNull()
      .references(() => turn.id),
    assistant: text('assistant').notNull(),
    ordinal: integer('ordinal').notNull(),
    step: integer('step').notNull(),
    providerCallId: text('provider_call_id').notNull(),
    tool: text('tool').notNull(),
    effect: text('effect').$type<Effect>().notNull(),
    arguments: text('arguments').notNull(),
    argumentsHash: text('arguments_hash').notNull(),
    status: text('status').$type<CallStatus>(),
    result: text('result'),
    blob: text('blob'),
    note: text('note'),
    createdAt: created(),
    finishedAt: when('finished_at'),
  },
  (t) => [uniqueIndex('call_in_message').on(t.assistant, t.ordinal), index('call_of_turn').on(t.turn, t.step)],
);

export const approval = pawl.table(
  'approval',
  {
    id: text('id').primaryKey(),
    call: text('call')
      .notNull()
      .references(() => call.key),
    turn: text('turn')
      .notNull()
      .references(() => turn.id),
    asked: jsonb('asked').$type<Asked>().notNull(),
    answer: text('answer').$type<ApprovalAnswer>(),
    /** Arguments that the person changed; validated again before they run. */
    editedArguments: text('edited_arguments'),
    /** The input that holds a message typed instead of an answer, or that brings an answer after its turn's end. */
    input: text('input'),
    /** What the person added to their word on an outcome. */
    note: text('note'),
    answeredBy: text('answered_by'),
    answeredAt: when('answered_at'),
    /** When its turn drew its conclusion. Without an answer: that it waits no longer, and leaves the wait open. */
    settledAt: when('settled_at'),
    expiresAt: when('expires_at').notNull(),
    createdAt: created(),
  },
  (t) => [
    index('approval_unanswered').on(t.turn).where(sql`${t.answer} is null`),
    index('approval_by_input').on(t.input).where(sql`${t.input} is not null`),
  ],
);

/** Something outside that somebody reported to a session, by name; the same id again is the same event. */
export const outsideEvent = pawl.table(
  'outside_event',
  {
    session: text('session')
      .notNull()
      .references(() => session.id),
    id: text('id').notNull(),
    name: text('name').notNull(),
    body: text('body').notNull(),
    sender: text('sender'),
    /** How many waits it ended; 0: nothing has taken it yet. */
    waits: integer('waits').notNull(),
    createdAt: created(),
  },
  (t) => [
    primaryKey({ columns: [t.session, t.id] }),
    index('outside_event_untaken').on(t.session, t.name, t.createdAt).where(sql`${t.waits} = 0`),
  ],
);

/** Append-only; the hash covers the parent, so a head names the whole past. */
export const message = pawl.table('message', {
  hash: text('hash').primaryKey(),
  parent: text('parent').notNull(),
  kind: text('kind').$type<MessageKind>().notNull(),
  body: jsonb('body').$type<Message>().notNull(),
  depth: integer('depth').notNull(),
  tokens: integer('tokens').notNull(),
  createdAt: created(),
});

export const blob = pawl.table('blob', {
  hash: text('hash').primaryKey(),
  tenant: text('tenant').notNull(),
  size: int8('size').notNull(),
  data: bytes('data').notNull(),
  createdAt: created(),
});

export const event = pawl.table(
  'event',
  {
    stream: text('stream').notNull(),
    seq: int8('seq').notNull(),
    key: text('key').notNull(),
    session: text('session').notNull(),
    turn: text('turn'),
    layer: text('layer').$type<Layer>().notNull(),
    kind: text('kind').$type<JournalEvent['kind']>().notNull(),
    body: jsonb('body').$type<JournalEvent>().notNull(),
    at: when('at').notNull().default(sql`clock_timestamp()`),
  },
  (t) => [
    primaryKey({ columns: [t.stream, t.seq] }),
    uniqueIndex('event_once').on(t.stream, t.key),
    index('event_of_turn').on(t.turn, t.seq),
  ],
);

/** Text chunks until their message is stored. */
export const delta = pawl.table(
  'delta',
  {
    id: bigserial('id', { mode: 'number' }).primaryKey(),
    stream: text('stream').notNull(),
    turn: text('turn').notNull(),
    step: integer('step').notNull(),
    attempt: text('attempt').notNull(),
    n: integer('n').notNull(),
    channel: text('channel').$type<'text' | 'reasoning'>().notNull(),
    chunk: text('chunk').notNull(),
  },
  (t) => [index('delta_of_stream').on(t.stream, t.id), uniqueIndex('delta_once').on(t.attempt, t.n)],
);

export type EffectState =
  | 'intended'
  | 'started'
  | 'succeeded'
  | 'failed'
  | 'unknown'
  | 'settled_done'
  | 'settled_absent'
  | 'abandoned';

/** `started` is all that is known until its attempt tells; `unknown`: that attempt was lost. */
export type UndoState = 'started' | 'undone' | 'failed' | 'unknown';

/** The ledger: one row for each call that is not `none`. */
export const effect = pawl.table(
  'effect',
  {
    key: text('key')
      .primaryKey()
      .references(() => call.key),
    turn: text('turn')
      .notNull()
      .references(() => turn.id),
    tool: text('tool').notNull(),
    effect: text('effect').$type<Effect>().notNull(),
    policyVersion: integer('policy_version').notNull(),
    argumentsHash: text('arguments_hash').notNull(),
    state: text('state').$type<EffectState>().notNull(),
    attempt: text('attempt'),
    leaseUntil: when('lease_until'),
    host: text('host'),
    boot: text('boot'),
    /** Process that makes the attempt (the worker), and the process group it started, if any. */
    pid: integer('pid'),
    pidStarted: text('pid_started'),
    group: jsonb('process_group').$type<{ pid: number; started: string } | null>(),
    /** What the tool noted before it acted, such as hashes before and after. */
    details: jsonb('details'),
    createdAt: created(),
    startedAt: when('started_at'),
    settledAt: when('settled_at'),
    /** When a cancel had cut it in the middle. */
    cutAt: when('cut_at'),
    undo: text('undo').$type<UndoState>(),
    undoAttempt: text('undo_attempt'),
    /** When its undo began, and when it was known what became of that. */
    undoStartedAt: when('undo_started_at'),
    undoSettledAt: when('undo_settled_at'),
  },
  (t) => [index('effect_unsettled').on(t.turn).where(sql`${t.state} in ('intended', 'started', 'unknown')`)],
);

/** One row a provider request, opened before it is sent; an open row counts as the worst case. */
export const usage = pawl.table(
  'usage',
  {
    attempt: text('attempt').primaryKey(),
    sample: text('sample').notNull(),
    session: text('session').notNull(),
    turn: text('turn')
      .notNull()
      .references(() => turn.id),
    step: integer('step').notNull(),
    model: text('model').notNull(),
    outputCapTokens: integer('output_cap_tokens').notNull(),
    outcome: text('outcome'),
    inputTokens: integer('input_tokens'),
    cachedTokens: integer('cached_tokens'),
    outputTokens: integer('output_tokens'),
    reasoningTokens: integer('reasoning_tokens'),
    complete: boolean('complete').notNull().default(false),
    wasted: boolean('wasted').notNull().default(false),
    /** The most it may cost, in micro-USD; null where there is no price. */
    worstMicroUsd: int8('worst_micro_usd'),
    /** What is known to have been spent on it. */
    costMicroUsd: int8('cost_micro_usd'),
    openedAt: when('opened_at').notNull().default(sql`clock_timestamp()`),
    closedAt: when('closed_at'),
  },
  (t) => [
    index('usage_of_turn').on(t.turn),
    index('usage_of_sample').on(t.sample),
    index('usage_open').on(t.turn).where(sql`${t.closedAt} is null`),
  ],
);
