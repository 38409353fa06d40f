import { POLICY } from '../policy.ts';
import type { GoalBudget, GoalCause, GoalLimitName, GoalState, LentLimit } from './goal-state.ts';

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

/** What one more request may use at most. */
export type RequestLimits = Pick<RoundLimits, 'maxTokens' | 'maxMicroUsd'>;

/** What one more turn may use at most. */
export interface RoundLimits {
  readonly maxTokens: number;
  readonly maxMicroUsd: number | null;
  readonly maxRunningMs: number;
}

export function leftOf({ budget, spent, held }: Pick<GoalState, 'budget' | 'spent' | 'held'>): RoundLimits {
  const { tokens, microUsd, runningMs } = budget;
  return {
    maxTokens: Math.max(0, tokens - spent.tokens - held.tokens),
    maxMicroUsd: microUsd === null ? null : Math.max(0, microUsd - spent.microUsd - held.microUsd),
    maxRunningMs: Math.max(0, runningMs - spent.runningMs),
  };
}

/** What of a budget is lent to sub-agents that still run. */
export function heldOf({ held }: Pick<GoalState, 'held'>, limit: LentLimit): number {
  return limit === 'tokens' ? held.tokens : held.microUsd;
}

/** How much a budget allows. */
export function allowedOf({ turns, tokens, microUsd, runningMs }: GoalBudget, limit: GoalLimitName): number {
  const allowed = { turns, tokens, usd: microUsd ?? Number.POSITIVE_INFINITY, running_ms: runningMs };
  return allowed[limit];
}

/** Before anything was done. */
export const UNSPENT = {
  spent: { turns: 0, tokens: 0, microUsd: 0, runningMs: 0 },
  held: { tokens: 0, microUsd: 0 },
} as const satisfies Pick<GoalState, 'spent' | 'held'>;

/** How long all the checks of a goal may take, each as long as one may. */
export function checksMostMs(): number {
  const { most, mostLimitS, slackMs } = POLICY.goal.checks;
  return most * mostLimitS * 1_000 + slackMs;
}

/** What is used of what may be used, for people. */
export function limitWords({ budget, spent }: Pick<GoalState, 'budget' | 'spent'>): string {
  return `${spent.turns} of ${budget.turns} turns and ${spent.tokens} of ${budget.tokens} tokens used`;
}
