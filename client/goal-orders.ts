import { agentOf } from '../activities/store/definitions.ts';
import {
  isKnownCommand,
  keepAnswer,
  type NewGoalCommand,
  storeGoalCommand,
} from '../activities/store/goal-commands.ts';
import {
  type BudgetWish,
  type CheckWish,
  planChange,
  type Refused,
  usualMicroUsd,
} from '../activities/store/goal-plan.ts';
import { findGoal, goalPlace, type GoalRow } from '../activities/store/goals.ts';
import { newId } from '../activities/store/ids.ts';
import { type StoredWake, storeWake } from '../activities/store/wakes.ts';
import type { GoalCommand } from '../workflows/core/goal/goal-event.ts';
import type { GoalBudget } from '../workflows/core/goal/goal-state.ts';
import { onStore } from './faults.ts';
import { goalOf } from './goals.ts';
import type { GoalDeps } from './new-goal.ts';
import { refuseBadId } from './own-id.ts';
import { changeTemplate, templateOf, type TemplateRow } from './recurring.ts';

export interface OrderDeps extends Pick<GoalDeps, 'db' | 'engine'> {
  readonly catalogue: Pick<GoalDeps['catalogue'], 'toolCheck'>;
}

export interface GoalOrder {
  /** The same id again is the same command; one of its own if left out. */
  readonly id?: string | undefined;
  readonly kind: GoalCommand['kind'];
  readonly by: string;
  readonly why?: string | undefined;
  /** For `edit`: what is left out stays as it is. */
  readonly objective?: string | undefined;
  readonly budget?: BudgetWish | undefined;
  readonly checks?: readonly CheckWish[] | undefined;
}

export type OrderAnswer =
  | { readonly kind: 'done'; readonly status: string }
  | { readonly kind: 'final'; readonly status: string }
  | { readonly kind: 'conflict' }
  | Refused;

/** Tells a goal what to do, and brings its new status. Null: the tenant has no such goal. */
export async function orderGoal(
  deps: OrderDeps,
  at: { readonly tenant: string; readonly goal: string },
  order: GoalOrder,
): Promise<OrderAnswer | null> {
  refuseBadId(order.id);
  const { db } = deps;
  const row = await onStore(() => goalOf(db, at));
  const template = row ? null : await onStore(() => templateOf(db, at));
  const ordered = row ?? template;
  if (!ordered) return null;
  const command = await onStore(() => commandOf(deps, ordered, order));
  if (command.kind === 'refused') return command;
  // A goal that is over takes no further command, and says again what it said to those before.
  const over = row?.isFinal ? row.status : template?.endedAt ? 'cancelled' : null;
  if (over !== null && !(await onStore(() => isKnownCommand(db, command.stored)))) {
    await repeatSchedule(deps.engine, ordered, order.kind);
    return { kind: 'final', status: over };
  }
  const stored = await onStore(() => storeGoalCommand(db, command.stored));
  if (stored.kind === 'conflict') return stored;
  if (stored.answer !== null) {
    await repeatSchedule(deps.engine, ordered, order.kind);
    return { kind: 'done', status: stored.answer };
  }
  return row ? await orderOne(deps, row, command) : await orderRecurring(deps, ordered.id, command);
}

/**
 * The engine may have been away when it was told first. An end of a goal of its own takes its Schedule away by itself,
 * and a recurring one may have been paused again since it was resumed.
 */
async function repeatSchedule(
  engine: OrderDeps['engine'],
  ordered: GoalRow | TemplateRow,
  kind: GoalOrder['kind'],
): Promise<void> {
  const isOne = 'state' in ordered;
  if (isOne && kind === 'resume' && !ordered.isFinal) await engine.changeSchedule(ordered.id, kind);
  if (!isOne && kind === 'cancel') await engine.changeSchedule(ordered.id, kind);
}

/** A command as it is stored, and the budget that it comes to. */
interface Ordered {
  readonly kind: 'command';
  readonly stored: NewGoalCommand;
  readonly budget: Partial<GoalBudget>;
}

/** An edit that could not be kept is refused. */
async function commandOf(
  { db, catalogue }: OrderDeps,
  ordered: GoalRow | TemplateRow,
  { id = newId('cmd'), kind, by, why, objective, budget, checks }: GoalOrder,
): Promise<Ordered | Refused> {
  const plain = { goal: ordered.id, id, kind, by, why: why ?? null };
  if (kind !== 'edit') return { kind: 'command', stored: plain, budget: {} };
  const agent = await agentOf(
    db,
    'agent' in ordered ? ordered.agent : ((await goalPlace(db, ordered.id))?.agent ?? ''),
  );
  const judged = { agent, judge: ordered.judge };
  const planned = planChange(judged, { checks, budget }, catalogue.toolCheck);
  if (planned.kind === 'refused') return planned;
  const now = 'state' in ordered ? ordered.state.budget : ordered.budget;
  const { tokens } = planned.budget;
  // One in dollars that nobody has named follows the tokens.
  const isUsual = tokens !== undefined && now.microUsd === usualMicroUsd(judged, now.tokens);
  const usual = isUsual ? { microUsd: usualMicroUsd(judged, tokens) } : {};
  const stored = { ...plain, objective, budget: budget && planned.budget, checks: planned.checks };
  return { kind: 'command', stored, budget: { ...usual, ...planned.budget } };
}

async function orderOne({ db, engine }: OrderDeps, row: GoalRow, { stored, budget }: Ordered): Promise<OrderAnswer> {
  if (row.isFinal) return { kind: 'final', status: row.status };
  const { id, kind, objective, checks = null } = stored;
  const wish = objective === undefined && checks === null ? 'same' : 'changed';
  const command: GoalCommand = kind === 'edit' ? { id, kind, budget, wish } : { id, kind };
  const status = await engine.commandGoal(row.id, command);
  if (status === null)
    return { kind: 'final', status: (await onStore(() => findGoal(db, row.id)))?.status ?? row.status };
  await onStore(() => keepAnswer(db, row.id, id, status));
  // What wakes it is over with it; one that was made paused begins when the goal is told to go on.
  if (kind === 'cancel' || kind === 'resume') await engine.changeSchedule(row.id, kind);
  return { kind: 'done', status };
}

/** A round that is open goes on in any case; what changes is which firings come, and what they begin with. */
async function orderRecurring({ db, engine }: OrderDeps, id: string, ordered: Ordered): Promise<OrderAnswer> {
  const { kind, id: command } = ordered.stored;
  const status = await onStore(() => changeTemplate(db, id, { ...ordered.stored, budget: ordered.budget }));
  if (status === null && kind !== 'cancel') return { kind: 'final', status: 'cancelled' };
  if (kind !== 'edit') await engine.changeSchedule(id, kind);
  const answer = status ?? 'cancelled';
  await onStore(() => keepAnswer(db, id, command, answer));
  return { kind: 'done', status: answer };
}

export interface WakeRequest {
  /** Twice delivered is once woken; one of its own if left out. */
  readonly id?: string | undefined;
  /** What has happened, where the goal may wait for it by name. */
  readonly event?: string | undefined;
  readonly by: string;
}

export type WokenGoal = Omit<StoredWake, 'isBeingTold'>;

/** Wakes a goal: a row first, then the engine. Null: the tenant has no such goal; a recurring one has nothing to wake. */
export async function wakeGoal(
  { db, engine }: Omit<OrderDeps, 'catalogue'>,
  at: { readonly tenant: string; readonly goal: string },
  { id: key = newId('wk'), event, by }: WakeRequest,
): Promise<WokenGoal | 'recurring' | null> {
  refuseBadId(key);
  const row = await onStore(() => goalOf(db, at));
  if (!row) return (await onStore(() => templateOf(db, at))) ? 'recurring' : null;
  const stored = await onStore(() => storeWake(db, { goal: row.id, key, source: 'api', event: event ?? null, by }));
  if (stored.outcome === null && !stored.isBeingTold) await engine.lookGoal(row.id);
  const { id, isNew, outcome, why } = stored;
  return { id, isNew, outcome, why };
}
