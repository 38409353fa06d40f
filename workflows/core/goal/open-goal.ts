import { POLICY } from '../policy.ts';
import { type Doing, FRESH_BRAKES, type GoalBudget, type GoalState } from './goal-state.ts';
import { UNSPENT } from './goal-limits.ts';
import { withFact } from './moving.ts';

export interface NewGoal {
  readonly budget: GoalBudget;
  /** How many sceptics try a candidate. */
  readonly sceptics: number;
  /** The newest turn of the session that is over: none before it is this goal's. */
  readonly afterTurn?: { readonly n: number; readonly turn: string };
  /** `queued`: the input that brought the goal is its round 0. */
  readonly firstRound?: 'queued';
  readonly atMs: number;
}

export function openGoal({ budget, sceptics, afterTurn, firstRound, atMs }: NewGoal): GoalState {
  const doing: Doing = firstRound ? { kind: 'running', round: 0 } : { kind: 'due', notBeforeMs: atMs };
  const status = { kind: 'active', doing } as const;
  const state: GoalState = {
    status,
    budget,
    ...UNSPENT,
    sinceTurn: afterTurn?.n ?? 0,
    rounds: 0,
    seenTurn: afterTurn ?? null,
    brakes: FRESH_BRAKES(POLICY.goal.gapMinMs),
    sceptics,
    pendingWakes: [],
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
