import { and, eq, gt, ne } from 'drizzle-orm';
import { least, type Limits } from '../../workflows/core/policy.ts';
import { leftOf, type RoundLimits, UNSPENT } from '../../workflows/core/goal/goal-limits.ts';
import type { GoalState } from '../../workflows/core/goal/goal-state.ts';
import type { TurnRules } from '../../workflows/core/turn-rules.ts';
import type { Tx } from './database.ts';
import { billOfGoal } from './goal-bill.ts';
import { goal, goalRound, input, job, outbox, turn } from './schema.ts';
import { runningMsOf } from './running-ms.ts';

/** What a goal makes of a turn of its session; null where the session has none that is open. */
export interface GoalOfTurn {
  readonly goal: string;
  /** The goal is at work: it judges each end. */
  readonly isActive: boolean;
}

/** Tools of every session with a goal. */
const GOAL_TOOLS = ['get_goal', 'update_goal'] as const;

export async function goalOfTurn(tx: Tx, session: string): Promise<GoalOfTurn | null> {
  const [row] = await tx
    .select({ id: goal.id, status: goal.status })
    .from(goal)
    .where(and(eq(goal.session, session), eq(goal.isFinal, false)));
  return row ? { goal: row.id, isActive: row.status === 'active' } : null;
}

export function toolsWith(tools: readonly string[], found: GoalOfTurn | null): readonly string[] {
  return found ? [...tools, ...GOAL_TOOLS.filter((name) => !tools.includes(name))] : tools;
}

/** No todo gate and no stop gate inside the turns of a goal that is at work. */
export function rulesWith(rules: TurnRules, found: GoalOfTurn | null): TurnRules {
  return found?.isActive ? { ...rules, todoGate: 'off', goal: 'active' } : rules;
}

/** A round may use what is left of the goal's budget, and no turn more than its agent may. */
export async function limitsWith(tx: Tx, limits: Limits, directive: string): Promise<Limits> {
  const [round] = await tx
    .select({ limits: goalRound.limits, queuedAt: goalRound.createdAt, session: input.session, state: goal.state })
    .from(goalRound)
    .innerJoin(goal, eq(goal.id, goalRound.goal))
    .innerJoin(input, eq(input.id, goalRound.input))
    .where(eq(goalRound.input, directive));
  if (!round) return limits;
  return narrowed(narrowed(limits, round.limits), await leftNow(tx, { ...round, directive }));
}

/**
 * People go before a directive that is queued, and sub-agents go on meanwhile: what both have spent, or were lent, is
 * not left any more.
 */
async function leftNow(
  tx: Tx,
  { limits, queuedAt, session, state, directive }: QueuedRound & { readonly directive: string },
): Promise<RoundLimits> {
  const between = await tx
    .select()
    .from(turn)
    .where(and(eq(turn.session, session), ne(turn.input, directive), gt(turn.endedAt, queuedAt)));
  const { budget, sinceTurn } = state;
  const { spent, held } = await billOfGoal(tx, { session, sinceTurn, besides: directive });
  const runningMs = between.reduce((sum, ended) => sum + runningMsOf(ended), 0);
  const left = leftOf({ budget, spent: { ...UNSPENT.spent, ...spent }, held });
  return { ...left, maxRunningMs: Math.max(0, limits.maxRunningMs - runningMs) };
}

interface QueuedRound {
  readonly limits: RoundLimits;
  readonly queuedAt: Date;
  readonly session: string;
  readonly state: GoalState;
}

function narrowed(limits: Limits, round: RoundLimits): Limits {
  return {
    ...limits,
    maxTokens: least(limits.maxTokens, round.maxTokens),
    maxMicroUsd: least(limits.maxMicroUsd, round.maxMicroUsd),
    maxRunningMs: least(limits.maxRunningMs, round.maxRunningMs),
  };
}

/** The input of the job that brought the goal, whose work a directive is; null where no job did. */
export async function jobInputOf(tx: Tx, directive: string): Promise<string | null> {
  const [row] = await tx
    .select({ input: job.input })
    .from(goalRound)
    .innerJoin(job, eq(job.goal, goalRound.goal))
    .where(eq(goalRound.input, directive));
  return row?.input ?? null;
}

/** A word about the end of a turn for the goal that its session works on: it judges the end. Null: there is none. */
export async function tellGoal(tx: Tx, session: string, turn: string): Promise<string | null> {
  const open = await goalOfTurn(tx, session);
  if (!open) return null;
  await tx
    .insert(outbox)
    .values({ receiver: `goal:${open.goal}`, event: `ended/${turn}`, body: { turn } })
    .onConflictDoNothing();
  return open.goal;
}
