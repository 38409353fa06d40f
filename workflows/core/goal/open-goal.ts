import { POLICY } from '../policy.ts';
import { FRESH_BRAKES, type GoalBudget, type GoalState } from './goal-state.ts';
import { withFact } from './moving.ts';

export interface NewGoal {
  readonly budget: GoalBudget;
  /** How many sceptics try a candidate. */
  readonly sceptics: number;
  readonly atMs: number;
}

export function openGoal({ budget, sceptics, atMs }: NewGoal): GoalState {
  const status = { kind: 'active', doing: { kind: 'due', notBeforeMs: atMs } } as const;
  const state: GoalState = {
    status,
    budget,
    spent: { turns: 0, tokens: 0, microUsd: 0, runningMs: 0 },
    rounds: 0,
    seenTurn: null,
    brakes: FRESH_BRAKES(POLICY.goal.gapMinMs),
    sceptics,
    pendingWake: null,
    verdict: null,
    facts: [],
    nextFact: 1,
    // Something may lie in the store from before it began.
    heard: 1,
    looked: 0,
    commands: [],
    atMs,
  };
  return withFact(state, { kind: 'moved', to: status, cause: { name: 'created' }, decidedBy: 'user', turn: null });
}
