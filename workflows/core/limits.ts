import type { End, LimitName } from './ends.ts';
import { endPhaseOf, type TurnState } from './turn-state.ts';
import { chargedMicroUsd, chargedTokens } from './usage.ts';

const MICRO = 1_000_000;

/** The end that a used-up budget asks for, or nothing. Used up means spent ≥ limit; what is leased counts as spent. */
export function limitReached(state: TurnState): End | null {
  const { limits } = state;
  const reached = (allowed: number | null, used: number): allowed is number => allowed !== null && used >= allowed;

  if (reached(limits.maxSteps, state.step)) return aborted(state, 'max_steps', 'steps', limits.maxSteps, state.step);
  const tokens = chargedTokens(state.usage) + (state.agents?.tokens ?? 0);
  if (reached(limits.maxTokens, tokens)) return aborted(state, 'budget', 'tokens', limits.maxTokens, tokens);
  const microUsd = chargedMicroUsd(state.usage) + (state.agents?.microUsd ?? 0);
  if (reached(limits.maxMicroUsd, microUsd))
    return aborted(state, 'budget', 'usd', limits.maxMicroUsd / MICRO, microUsd / MICRO);
  if (reached(limits.maxRunningMs, state.runningMs))
    return aborted(state, 'deadline', 'running_ms', limits.maxRunningMs, state.runningMs);
  return absoluteEnd(state, state.atMs);
}

/** The end of a turn whose absolute end is over, whatever it waits for. */
export function absoluteEnd(state: TurnState, now: number): End | null {
  const { notAfterMs } = state.limits;
  return notAfterMs === null || now < notAfterMs ? null : aborted(state, 'deadline', 'not_after', notAfterMs, now);
}

/** Until when something may be waited for, ms since the epoch: its own time, or the turn's absolute end. */
export function withinTurn({ limits }: TurnState, untilMs: number): number {
  return Math.min(untilMs, limits.notAfterMs ?? Infinity);
}

function aborted(
  state: TurnState,
  detail: 'max_steps' | 'budget' | 'deadline',
  limit: LimitName,
  allowed: number,
  used: number,
): End {
  return {
    reason: 'ABORTED',
    detail,
    decidedBy: 'runtime',
    signal: { name: 'limit', limit, allowed, used },
    phase: endPhaseOf(state.phase),
  };
}
