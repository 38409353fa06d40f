import type { Decider } from '../ends.ts';
import { POLICY } from '../policy.ts';
import { heldOf } from './goal-limits.ts';
import {
  type AtJudging,
  type CameWake,
  type Doing,
  FRESH_BRAKES,
  type GoalCause,
  type GoalFact,
  type GoalState,
  type GoalStatus,
  type Lent,
  type LentLimit,
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
  return settlingWakes(told);
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

/** Until some of what is lent has come back; then what is judged goes on, or the next round begins. */
export function lent(state: GoalState, limit: LentLimit, judging: AtJudging | null): GoalState {
  const againMs = state.atMs + POLICY.goal.yieldLookMs;
  return doing(state, { kind: 'lent', limit, held: heldOf(state, limit), againMs, judging });
}

export function lentNoMore(state: GoalState, { judging }: Lent): GoalState {
  return judging ? doing(state, judging) : due(state);
}

/** Something may lie in the store: it is looked at before anything else is done. */
export function noticed(state: GoalState): GoalState {
  return { ...state, heard: state.heard + 1 };
}

/** Active again out of a rest: at once, with new brakes, and with what was spent since. */
export function waking(state: GoalState, cause: GoalCause, decidedBy: Decider): GoalState {
  const fresh = { ...noticed(state), brakes: { ...FRESH_BRAKES(POLICY.goal.gapMinMs), outages: state.brakes.outages } };
  const to: GoalStatus = { kind: 'active', doing: { kind: 'due', notBeforeMs: state.atMs } };
  return moving(fresh, to, cause, decidedBy);
}

/** Whether a wake ends this rest; else it is only noted. */
function ends(status: GoalStatus, { event, to }: CameWake): boolean {
  const isForEvent = status.kind === 'waiting' && status.awaited.on === 'event';
  if (isForEvent && event !== null) return event === status.awaited.event;
  return to === 'goal' && mayWake(status);
}

function mayWake(status: GoalStatus): boolean {
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

/** Due while it is at work: one stands for all of the same event that come meanwhile, and one without a name for any. */
export function remembered(state: GoalState, wake: CameWake): GoalState {
  const { pendingWakes: known } = state;
  const standing = known.find((each) => standsFor(each, wake)) ?? fullOf(known, wake);
  if (standing) return settled(state, wake, 'superseded', standing.id);
  return withFact({ ...state, pendingWakes: [...known, wake] }, { kind: 'wake_remembered', wake: wake.id });
}

/** Where no more names are remembered, the first one; one without a name always is, and each has its own kind to stand for it. */
function fullOf(known: readonly CameWake[], { event, to }: CameWake): CameWake | undefined {
  if (event === null) return undefined;
  const named = known.filter((each) => each.event !== null && each.to === to);
  return named.length < POLICY.goal.wakesRemembered ? undefined : named[0];
}

/** Whatever the one wakes, the other would. */
function standsFor(one: CameWake, other: CameWake): boolean {
  return (one.event === null || one.event === other.event) && (one.to === 'goal' || other.to === 'session');
}

/** Those that were remembered, as soon as the goal comes to rest, until one of them makes it active again. */
function settlingWakes(state: GoalState): GoalState {
  const [wake, ...others] = state.pendingWakes;
  if (wake === undefined || state.status.kind === 'active') return state;
  return settlingWakes(woken({ ...state, pendingWakes: others }, wake));
}

/** A wake that found the goal at rest. */
export function woken(state: GoalState, wake: CameWake): GoalState {
  const { status } = state;
  if (!ends(status, wake)) {
    const isOther = status.kind === 'waiting' && wake.event !== null;
    return settled(state, wake, 'recorded', isOther ? 'another_event' : nameOf(status));
  }
  const fired = settled(state, wake, 'fired', nameOf(status));
  return waking(standingFor(fired, wake), { name: 'wake', id: wake.id }, 'scheduler');
}

/** It wakes for all that have no other name; a goal may wait next for the event of one that has. */
function standingFor(state: GoalState, { id, event }: CameWake): GoalState {
  const isCovered = (each: CameWake) => each.event === null || each.event === event;
  const rest: GoalState = { ...state, pendingWakes: state.pendingWakes.filter((each) => !isCovered(each)) };
  const covered = state.pendingWakes.filter(isCovered);
  return covered.reduce((now, each) => settled(now, each, 'superseded', id), rest);
}

export function settled(
  state: GoalState,
  { id: wake }: Pick<CameWake, 'id'>,
  outcome: 'fired' | 'recorded' | 'superseded',
  why: string,
): GoalState {
  return withFact(state, { kind: 'wake_settled', wake, outcome, why });
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
