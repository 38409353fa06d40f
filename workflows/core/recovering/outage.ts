import { patienceOf } from '../policy.ts';
import type { TurnState } from '../turn-state.ts';

/** Transport retries are used up: rests, and begins them anew; null where that is used up too. */
export function retryTurn(state: TurnState): TurnState | null {
  const { transientDelaysMs, transientPerTurn, outageMs } = patienceOf(state.rules);
  const { inStep, inTurn } = state.outage;
  const delayMs = transientDelaysMs[inStep];
  const sinceMs = state.outage.sinceMs ?? state.atMs;
  if (state.rules.role === 'sub_agent' || delayMs === undefined || inTurn >= transientPerTurn) return null;
  if (state.atMs + delayMs - sinceMs > outageMs) return null;
  return {
    ...state,
    phase: { kind: 'resting', untilMs: state.atMs + delayMs, cause: 'outage' },
    tries: { ...state.tries, transport: 0, overloads: 0 },
    outage: { inStep: inStep + 1, inTurn: inTurn + 1, sinceMs },
  };
}
