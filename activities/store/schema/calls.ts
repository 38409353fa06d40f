import { sql } from 'drizzle-orm';
import { boolean, index, integer, jsonb, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import type { AgentMode } from '../../../workflows/core/agents.ts';
import type { Decider } from '../../../workflows/core/ends.ts';
import type { CallStatus, Effect } from '../../../workflows/core/tools.ts';
import type { ApprovalAnswer, Asked } from '../stored.ts';
import { created, int8, pawl, when } from './columns.ts';
import { session, input, turn } from './sessions.ts';

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
