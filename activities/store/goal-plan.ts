import type { GoalBudget } from '../../workflows/core/goal/goal-state.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import type { GoalCheck, GoalJudge, StoredAgent } from './schema.ts';

/** The most that may be asked for. */
export const GOAL_BOUNDS = {
  checks: POLICY.goal.checks.most,
  checkSeconds: POLICY.goal.checks.mostLimitS,
  sceptics: POLICY.goal.sceptics.most,
  objectiveChars: POLICY.goal.objectiveChars,
} as const;

export interface BudgetWish {
  readonly turns?: number | undefined;
  readonly tokens?: number | undefined;
  readonly usd?: number | undefined;
  /** Of working time, without waiting. */
  readonly hours?: number | undefined;
}

/** How a goal is judged, and what it may use. */
export interface GoalWish {
  /** Command lines that are run in the workspace after each turn: all exit with 0 when the goal is reached. */
  readonly checks?: readonly (string | GoalCheck)[] | undefined;
  /** How many sceptics try a candidate; 1 if left out. */
  readonly sceptics?: number | undefined;
  /** Who judges; the agent's own model if left out. */
  readonly judge?: GoalJudge | undefined;
  readonly budget?: BudgetWish | undefined;
}

export interface PlannedGoal {
  readonly checks: readonly GoalCheck[];
  readonly judge: GoalJudge;
  readonly budget: GoalBudget;
  readonly sceptics: number;
}

const MICRO = 1_000_000;
const HOUR_MS = 3_600_000;

/** The wish with everything that was left out; a budget that could not be kept is refused. */
export function planGoal(
  agent: StoredAgent,
  { checks = [], sceptics = POLICY.goal.sceptics.default, judge = {}, budget = {} }: GoalWish,
): { readonly kind: 'planned'; readonly goal: PlannedGoal } | { readonly kind: 'refused'; readonly why: string } {
  const { mostLimitS, most } = POLICY.goal.checks;
  if (checks.length > most) return refused(`A goal may have ${most} checks: put several into one script.`);
  if (!Number.isInteger(sceptics) || sceptics < 1 || sceptics > POLICY.goal.sceptics.most)
    return refused(`A goal may have 1 to ${POLICY.goal.sceptics.most} sceptics.`);
  const all = checks.map(toCheck);
  if (all.some(({ timeoutSeconds: s }) => !(s >= 1 && s <= mostLimitS)))
    return refused(`A check may take 1 to ${mostLimitS} seconds.`);
  const judged = judge.model ?? agent.model;
  const unpriced = [agent.model, judged, ...(agent.fallback ? [agent.fallback.model] : [])].find(
    (model) => !agent.prices?.[model],
  );
  if (budget.usd !== undefined && unpriced !== undefined)
    return refused(
      `No price of ${unpriced} is known, so a budget in USD could not be kept: give agent ${agent.name} prices in the config, or leave it out.`,
    );
  const { turns, tokens, runningMs } = POLICY.goal;
  const planned = { turns, tokens, runningMs, microUsd: null, ...changedBudget(budget) };
  return { kind: 'planned', goal: { checks: all, judge, sceptics, budget: planned } };
}

function refused(why: string): { readonly kind: 'refused'; readonly why: string } {
  return { kind: 'refused', why };
}

function toCheck(check: string | GoalCheck): GoalCheck {
  return typeof check === 'string' ? { command: check, timeoutSeconds: POLICY.goal.checks.defaultLimitS } : check;
}

/** Only what was asked for. */
export function changedBudget({ turns, tokens, usd, hours }: BudgetWish): Partial<GoalBudget> {
  return {
    ...(turns === undefined ? {} : { turns }),
    ...(tokens === undefined ? {} : { tokens }),
    ...(usd === undefined ? {} : { microUsd: Math.round(usd * MICRO) }),
    ...(hours === undefined ? {} : { runningMs: Math.round(hours * HOUR_MS) }),
  };
}
