import type { End } from '../ends.ts';
import { goingOn } from '../going-on.ts';
import type { TurnState } from '../turn-state.ts';
import type { Verdict } from './check.ts';
import { askedAgain } from './structured-output.ts';

/** What came meanwhile is answered in this turn. */
export function messages(state: TurnState, end: End): Verdict {
  if (state.inbox.length === 0) return { kind: 'passes', state, end };
  return { kind: 'goes_on', state: askedAgain(goingOn(state, 'input_arrived')) };
}
