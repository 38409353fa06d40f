import type { GoalBudget, GoalCause, GoalLimitName, GoalSpent, GoalState } from './goal-state.ts';

type Limit = GoalCause & { readonly name: 'limit' };

/** The budget that is used up, if one is. Used up means spent ≥ limit. */
export function goalLimitReached({ budget, spent }: Pick<GoalState, 'budget' | 'spent'>): Limit | null {
  return (
    reached('turns', budget.turns, spent.turns) ??
    reached('tokens', budget.tokens, spent.tokens) ??
    reached('usd', budget.microUsd, spent.microUsd) ??
    reached('running_ms', budget.runningMs, spent.runningMs)
  );
}

function reached(limit: GoalLimitName, allowed: number | null, used: number): Limit | null {
  return allowed !== null && used >= allowed ? { name: 'limit', limit, allowed, used } : null;
}

/** What one more turn may use at most. */
export interface RoundLimits {
  readonly maxTokens: number;
  readonly maxMicroUsd: number | null;
  readonly maxRunningMs: number;
}

export function leftOf(budget: GoalBudget, spent: GoalSpent): RoundLimits {
  return {
    maxTokens: Math.max(0, budget.tokens - spent.tokens),
    maxMicroUsd: budget.microUsd === null ? null : Math.max(0, budget.microUsd - spent.microUsd),
    maxRunningMs: Math.max(0, budget.runningMs - spent.runningMs),
  };
}

/** What is used of what may be used, for people. */
export function limitWords({ budget, spent }: Pick<GoalState, 'budget' | 'spent'>): string {
  return `${spent.turns} of ${budget.turns} turns and ${spent.tokens} of ${budget.tokens} tokens used`;
}
