import type { Decider } from '../ends.ts';
import { POLICY } from '../policy.ts';
import {
  type Doing,
  FRESH_BRAKES,
  type GoalCause,
  type GoalFact,
  type GoalState,
  type GoalStatus,
} from './goal-state.ts';

type NewFact = GoalFact extends infer F ? (F extends GoalFact ? Omit<F, 'n'> : never) : never;

export function withFact(state: GoalState, fact: NewFact): GoalState {
  const n = state.nextFact;
  return { ...state, facts: [...state.facts, { ...fact, n } as GoalFact], nextFact: n + 1 };
}

/** Into another status; told outside, unless it only goes on. */
export function moving(state: GoalState, to: GoalStatus, cause: GoalCause, decidedBy: Decider): GoalState {
  const moved = { ...withdrawing(state, to), status: to };
  const told = withFact(moved, { kind: 'moved', to, cause, decidedBy, turn: state.seenTurn?.turn ?? null });
  return settlingWake(told);
}

/** A round that waits in the queue is not wanted once the goal rests. */
function withdrawing(state: GoalState, to: GoalStatus): GoalState {
  if (state.status.kind !== 'active' || state.status.doing.kind !== 'running' || to.kind === 'active') return state;
  return withFact(state, { kind: 'withdrawn', round: state.status.doing.round });
}

export function doing(state: GoalState, what: Doing): GoalState {
  return { ...state, status: { kind: 'active', doing: what } };
}

/** The next round, after the gap. */
export function due(state: GoalState): GoalState {
  return doing(state, { kind: 'due', notBeforeMs: state.atMs + state.brakes.gapMs });
}

/** Active again out of a rest: at once, and with new brakes. */
export function waking(state: GoalState, cause: GoalCause, decidedBy: Decider): GoalState {
  const fresh = { ...state, brakes: { ...FRESH_BRAKES(POLICY.goal.gapMinMs), outages: state.brakes.outages } };
  const to: GoalStatus = { kind: 'active', doing: { kind: 'due', notBeforeMs: state.atMs } };
  return moving(fresh, to, cause, decidedBy);
}

/** Whether a wake makes this status active; the others only note it. */
function wakes(status: GoalStatus): boolean {
  switch (status.kind) {
    case 'waiting':
    case 'blocked':
      return true;
    case 'paused':
      return status.by === 'backoff' || status.by === 'infrastructure';
    case 'active':
    case 'budget_limited':
    case 'complete':
    case 'cancelled':
      return false;
  }
}

/** A wake that was remembered while the goal was at work, as soon as it comes to rest. */
function settlingWake(state: GoalState): GoalState {
  const { pendingWake: wake, status } = state;
  if (wake === null || status.kind === 'active') return state;
  return woken({ ...state, pendingWake: null }, wake);
}

/** A wake that found the goal at rest. */
export function woken(state: GoalState, wake: string): GoalState {
  const { status } = state;
  if (!wakes(status)) {
    return withFact(state, { kind: 'wake_settled', wake, outcome: 'recorded', why: nameOf(status) });
  }
  const fired = withFact(state, { kind: 'wake_settled', wake, outcome: 'fired', why: nameOf(status) });
  return waking(fired, { name: 'wake', id: wake }, 'scheduler');
}

/** `paused(user)`: how a status is called in rows and answers. */
export function nameOf(status: GoalStatus): string {
  switch (status.kind) {
    case 'paused':
      return `paused(${status.by})`;
    case 'blocked':
      return `blocked(${status.on})`;
    case 'budget_limited':
      return `budget_limited(${status.limit})`;
    case 'waiting':
      return `waiting(${status.awaited.on})`;
    case 'active':
    case 'complete':
    case 'cancelled':
      return status.kind;
  }
}
