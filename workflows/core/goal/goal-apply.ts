import { POLICY } from '../policy.ts';
import { consequenceOf } from './after-turn.ts';
import { commanded } from './commands.ts';
import type { EndedTurn, GoalBill, GoalEvent, GoalUsage } from './goal-event.ts';
import { goalLimitReached, heldOf } from './goal-limits.ts';
import { type CameWake, type Doing, type GoalState, isFinal } from './goal-state.ts';
import { beginJudging, checked, doubted, gated, isJudgedAgain, judged } from './judging.ts';
import {
  doing,
  due,
  lent,
  lentNoMore,
  moving,
  noticed,
  remembered,
  settled,
  waking,
  withFact,
  woken,
} from './moving.ts';

/** The goal after what it has heard. Looks at nothing else; says nothing twice. */
export function applyGoal(before: GoalState, event: GoalEvent): GoalState {
  const state = { ...before, atMs: Math.max(before.atMs, event.atMs) };
  switch (event.kind) {
    case 'noticed':
      return noticed(state);
    case 'looked':
      return looked(state, event);
    case 'directed':
      return directed(state, event);
    case 'checked':
      return checked(state, event);
    case 'judged':
      return judged(charged(state, event.usage), event.verdict);
    case 'doubted':
      return doubted(charged(state, event.usage), event.vote);
    case 'gated':
      return gated(state, event);
    case 'time':
      return timeCame(state);
    case 'limited':
      return limited(state);
    case 'commanded':
      return commanded(state, event.command);
    case 'recorded':
      return { ...state, facts: state.facts.filter(({ n }) => n > event.upTo) };
  }
}

function looked(
  state: GoalState,
  { upTo, turns, bill, wakes, taken, begun, withdrawn }: GoalEvent & { readonly kind: 'looked' },
): GoalState {
  const told = taken.reduce(wakeTaken, { ...billed(state, bill), looked: upTo });
  const counted = turns.reduce(turnEnded, told);
  const after = begunBefore(returned(counted), begun);
  const isLeft = ({ id }: CameWake) => !taken.includes(id);
  return wakes.filter(isLeft).reduce(wakeCame, withdrawn === null ? after : directiveWithdrawn(after, withdrawn));
}

/** An engine that forgot the goal has forgotten the round, too, that it had queued. */
function begunBefore(state: GoalState, begun: number): GoalState {
  if (begun <= state.rounds) return state;
  const counted = { ...state, rounds: begun };
  if (state.status.kind !== 'active') return withFact(counted, { kind: 'withdrawn', round: begun });
  return doing(counted, { kind: 'running', round: begun });
}

/** Who takes a directive out of the queue wants no more of it. */
function directiveWithdrawn(state: GoalState, round: number): GoalState {
  const { status } = state;
  if (status.kind !== 'active' || status.doing.kind !== 'running' || status.doing.round !== round) return state;
  const cause = { name: 'session', state: 'directive_withdrawn' } as const;
  return moving(state, { kind: 'paused', by: 'user' }, cause, 'user');
}

/** Some of what was lent may have come back. */
function returned(state: GoalState): GoalState {
  const { status } = state;
  if (status.kind !== 'active' || status.doing.kind !== 'lent') return state;
  return heldOf(state, status.doing.limit) < status.doing.held ? lentNoMore(state, status.doing) : state;
}

/** The rows are the bill: what was added up since the look before is in it. What follows a goal's end is another one's. */
function billed(state: GoalState, { spent, held }: GoalBill): GoalState {
  if (isFinal(state.status)) return state;
  return { ...state, spent: { ...state.spent, ...spent }, held };
}

/** Of a turn that is judged again, only the bill knows what is new. */
function charged(state: GoalState, usage: GoalUsage): GoalState {
  if (isJudgedAgain(state)) return noticed(state);
  const { tokens, microUsd } = state.spent;
  return {
    ...state,
    spent: { ...state.spent, tokens: tokens + usage.tokens, microUsd: microUsd + usage.microUsd },
  };
}

function directed(state: GoalState, { round, outcome }: GoalEvent & { readonly kind: 'directed' }): GoalState {
  const counted = outcome === 'queued' ? { ...state, rounds: Math.max(state.rounds, round) } : state;
  const { status } = counted;
  if (status.kind !== 'active' || (status.doing.kind !== 'due' && status.doing.kind !== 'yielding')) {
    // Somebody spoke while it was being queued.
    return outcome === 'queued' && status.kind !== 'active' ? withFact(counted, { kind: 'withdrawn', round }) : counted;
  }
  switch (outcome) {
    case 'queued':
      return doing(counted, { kind: 'running', round });
    case 'busy':
      return doing(counted, { kind: 'yielding', againMs: counted.atMs + POLICY.goal.yieldLookMs });
    case 'closed':
      return moving(
        counted,
        { kind: 'blocked', on: 'session_closed' },
        { name: 'session', state: 'closed' },
        'runtime',
      );
  }
}

/** Each turn is counted once: they end in the order of their numbers. */
function turnEnded(state: GoalState, turn: EndedTurn): GoalState {
  if (state.seenTurn !== null && turn.n <= state.seenTurn.n) return state;
  const { spent, status } = state;
  const seen: GoalState = { ...state, seenTurn: { n: turn.n, turn: turn.turn } };
  if (isFinal(status)) return seen;
  const counted: GoalState = {
    ...seen,
    rounds: Math.max(state.rounds, turn.round ?? 0),
    spent: {
      ...spent,
      turns: spent.turns + (turn.round === null ? 0 : 1),
      runningMs: spent.runningMs + turn.runningMs,
    },
    brakes: braked(state, turn),
  };
  switch (status.kind) {
    case 'active':
      // The directive of a round still waits behind what a person asked for.
      if (status.doing.kind === 'running' && turn.round === null && !stops(counted, turn)) return counted;
      return concluded(counted, turn);
    case 'waiting':
    case 'blocked':
      return concluded(counted, turn);
    case 'paused':
    case 'budget_limited':
    case 'complete':
    case 'cancelled':
      return counted;
  }
}

/** Whether a turn of somebody else ended in a way that the goal may not pass over. */
function stops(state: GoalState, turn: EndedTurn): boolean {
  return consequenceOf(state, turn).kind === 'rest';
}

function braked({ brakes }: GoalState, { end }: EndedTurn): GoalState['brakes'] {
  const isCut = end.detail === 'max_steps' || end.detail === 'deadline';
  return { ...brakes, cutTurns: isCut ? brakes.cutTurns + 1 : 0 };
}

function concluded(state: GoalState, turn: EndedTurn): GoalState {
  const { end } = turn;
  const cause = { name: 'turn_end', reason: end.reason, detail: end.detail } as const;
  const what = consequenceOf(state, turn);
  const { turn: id, reply, acted, claim } = turn;
  switch (what.kind) {
    case 'judge':
      return beginJudging(activeAgain(state, cause), { turn: id, reply, acted, claim });
    case 'go_on':
      return due(activeAgain(state, cause));
    case 'lent':
      return lent(activeAgain(state, cause), what.limit, null);
    case 'rest': {
      const { status } = what;
      const moved = moving(state, status, cause, end.decidedBy);
      const isOutage = status.kind === 'paused' && status.by === 'infrastructure';
      return isOutage ? { ...moved, brakes: { ...moved.brakes, outages: moved.brakes.outages + 1 } } : moved;
    }
  }
}

function limited(state: GoalState): GoalState {
  const cause = goalLimitReached(state);
  if (!cause || state.status.kind !== 'active' || state.status.doing.kind !== 'due') return state;
  return moving(state, { kind: 'budget_limited', limit: cause.limit }, cause, 'runtime');
}

/** What a waiting or blocked goal lacked has come, or somebody went on without it. */
function activeAgain(state: GoalState, cause: Parameters<typeof waking>[1]): GoalState {
  return state.status.kind === 'active' ? state : waking(state, cause, 'runtime');
}

/** A look that began before it was settled brings it once more. */
function isSettled({ facts }: GoalState, wake: string): boolean {
  return facts.some((fact) => fact.kind === 'wake_settled' && fact.wake === wake);
}

/** The model has it already, as the result of its call: it must not end a later wait for the next one. */
function wakeTaken(state: GoalState, id: string): GoalState {
  if (isSettled(state, id)) return state;
  const pendingWakes = state.pendingWakes.filter((each) => each.id !== id);
  return settled({ ...state, pendingWakes }, { id }, 'superseded', 'taken_by_call');
}

function wakeCame(state: GoalState, wake: CameWake): GoalState {
  if (isSettled(state, wake.id) || state.pendingWakes.some(({ id }) => id === wake.id)) return state;
  return state.status.kind === 'active' ? remembered(state, wake) : woken(state, wake);
}

/** The word of an end may have been lost: without a look it would yield to that turn for ever. */
function lookedAgain(state: GoalState, what: Doing): GoalState {
  if (!('againMs' in what) || what.againMs > state.atMs) return state;
  const again = noticed(state);
  return what.kind === 'lent'
    ? lent(again, what.limit, what.judging)
    : doing(again, { kind: 'due', notBeforeMs: state.atMs });
}

function timeCame(state: GoalState): GoalState {
  const { status, atMs } = state;
  switch (status.kind) {
    case 'waiting': {
      const { untilMs } = status.awaited;
      return untilMs !== null && untilMs <= atMs ? waking(state, { name: 'time' }, 'scheduler') : state;
    }
    case 'paused':
      return 'untilMs' in status && status.untilMs <= atMs ? waking(state, { name: 'time' }, 'scheduler') : state;
    case 'active':
      return lookedAgain(state, status.doing);
    case 'blocked':
    case 'budget_limited':
    case 'complete':
    case 'cancelled':
      return state;
  }
}
