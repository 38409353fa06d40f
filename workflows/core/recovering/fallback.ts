import { missingTools } from '../ending-checks/contract.ts';
import { resampling } from '../going-on.ts';
import { patienceOf } from '../policy.ts';
import type { TurnState } from '../turn-state.ts';

/** Overloaded so often in a row that the agent's other model takes over, for the rest of the turn; null: it does not. */
export function switchModel(state: TurnState, overloads: number): TurnState | null {
  if (overloads < patienceOf(state.rules).overloadsInARow) return null;
  if (state.rules.fallback === 'none' || state.model === 'fallback' || isContractRerun(state)) return null;
  const switched = resampling(state, 'model_switched');
  return { ...switched, model: 'fallback', tries: { ...state.tries, transport: 0, overloads: 0 } };
}

function isContractRerun(state: TurnState): boolean {
  return state.contract.reruns > 0 && missingTools(state).length > 0;
}
