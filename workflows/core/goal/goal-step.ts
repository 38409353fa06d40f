import { goalLimitReached, leftOf, type RequestLimits, type RoundLimits } from './goal-limits.ts';
import type { GoalFact, GoalState, GoalStatus, Judging } from './goal-state.ts';

/** What to do next. */
export type GoalStep =
  | { readonly kind: 'record'; readonly facts: readonly GoalFact[] }
  | { readonly kind: 'look'; readonly upTo: number; readonly afterTurn: number; readonly sinceTurn: number }
  /** Queue the directive of that round, if the session is idle, nobody waits there, and its last end was looked at. */
  | { readonly kind: 'direct'; readonly round: number; readonly limits: RoundLimits; readonly afterTurn: number }
  | { readonly kind: 'limited' }
  | { readonly kind: 'check' | 'stopGate'; readonly turn: string }
  /** `failures`: tries before it that brought no usable answer. `left`: what the request may cost at most. */
  | { readonly kind: 'judge'; readonly turn: string; readonly failures: number; readonly left: RequestLimits }
  | {
      readonly kind: 'doubt';
      readonly turn: string;
      readonly sceptic: number;
      readonly failures: number;
      readonly left: RequestLimits;
    }
  /** Until then, or until something is noticed; null: until something is noticed. */
  | { readonly kind: 'await'; readonly untilMs: number | null }
  | { readonly kind: 'finish' };

/** Looks, and changes nothing. What is settled is told outside first, then what came is looked at. */
export function nextGoalStep(state: GoalState, nowMs: number): GoalStep {
  const { facts, heard, looked, status } = state;
  if (facts.length > 0) return { kind: 'record', facts };
  if (heard > looked)
    return { kind: 'look', upTo: heard, afterTurn: state.seenTurn?.n ?? 0, sinceTurn: state.sinceTurn };
  switch (status.kind) {
    case 'active':
      return activeStep(state, status, nowMs);
    case 'waiting':
      return { kind: 'await', untilMs: status.awaited.untilMs };
    case 'paused':
      return { kind: 'await', untilMs: 'untilMs' in status ? status.untilMs : null };
    case 'blocked':
    case 'budget_limited':
      return { kind: 'await', untilMs: null };
    case 'complete':
    case 'cancelled':
      return { kind: 'finish' };
  }
}

function activeStep(state: GoalState, { doing }: GoalStatus & { readonly kind: 'active' }, nowMs: number): GoalStep {
  switch (doing.kind) {
    case 'due': {
      if (goalLimitReached(state)) return { kind: 'limited' };
      if (nowMs < doing.notBeforeMs) return { kind: 'await', untilMs: doing.notBeforeMs };
      const { seenTurn, rounds } = state;
      return { kind: 'direct', round: rounds + 1, limits: leftOf(state), afterTurn: seenTurn?.n ?? 0 };
    }
    case 'yielding':
    case 'lent':
      return { kind: 'await', untilMs: doing.againMs };
    case 'running':
      return { kind: 'await', untilMs: null };
    case 'judging':
      return judgingStep(doing.turn.turn, doing.stage, leftOf(state));
  }
}

function judgingStep(turn: string, stage: Judging, { maxTokens, maxMicroUsd }: RoundLimits): GoalStep {
  const left = { maxTokens, maxMicroUsd };
  switch (stage.kind) {
    case 'checks':
      return { kind: 'check', turn };
    case 'judge':
      return { kind: 'judge', turn, failures: stage.failures, left };
    case 'doubt':
      return { kind: 'doubt', turn, sceptic: stage.approvals + stage.refutals + 1, failures: stage.failures, left };
    case 'stop_gate':
      return { kind: 'stopGate', turn };
  }
}
