import { POLICY } from '../policy.ts';
import type { Contract } from '../turn-rules.ts';
import { type BatchCall, FRESH_TRIES, type TurnState } from '../turn-state.ts';
import type { Check } from './check.ts';
import { ANSWER_TOOL } from './structured-output.ts';

/** Tools that must still succeed. */
export function missingTools({ rules, contract }: TurnState): readonly string[] {
  return (rules.contract?.tools ?? []).filter((tool) => !contract.succeeded.includes(tool));
}

/** Notes which required tools have succeeded in these calls. */
export function withSucceeded(state: TurnState, calls: readonly BatchCall[]): TurnState {
  const met = missingTools(state).filter((tool) => calls.some((call) => call.ref.tool === tool && call.state === 'ok'));
  if (met.length === 0) return state;
  return { ...state, contract: { ...state.contract, succeeded: [...state.contract.succeeded, ...met] } };
}

/** A required tool has not succeeded: a reminder, a rest, and the model once more; in the end the answer stands. */
export const completionContract: Check = (state, end) => {
  const { contract } = state.rules;
  const missing = missingTools(state);
  const { reruns } = state.contract;
  if (!contract || missing.length === 0 || reruns >= contract.maxRetries) return { kind: 'passes', state, end };
  const untilMs = state.atMs + delayMs(contract, reruns + 1);
  const drops = state.answer.schema === 'asks' && missing.some((tool) => tool !== ANSWER_TOOL);
  return {
    kind: 'goes_on',
    state: {
      ...state,
      phase: { kind: 'resting', untilMs, cause: 'contract' },
      tries: FRESH_TRIES,
      reminders: ['contract'],
      contract: { ...state.contract, reruns: reruns + 1 },
      answer: drops ? { ...state.answer, schema: 'dropped' } : state.answer,
    },
  };
};

function delayMs({ baseMs, maxMs }: Contract, n: number): number {
  return Math.min(baseMs * 2 ** Math.min(n - 1, POLICY.contract.maxExponent), maxMs);
}

/** For the end record; null where the agent has no contract. */
export function contractMark(state: TurnState): 'met' | 'unmet' | null {
  if (!state.rules.contract) return null;
  return missingTools(state).length === 0 ? 'met' : 'unmet';
}
