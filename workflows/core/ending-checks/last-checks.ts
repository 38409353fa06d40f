import type { End } from '../ends.ts';
import { ending } from '../going-on.ts';
import type { TurnState } from '../turn-state.ts';
import type { Verdict } from './check.ts';
import { messages } from './messages.ts';
import { tokenTarget } from './token-target.ts';

/** What is looked at once nobody else has anything against the end, and messages once more: it may have taken minutes. */
const LAST: readonly ((state: TurnState, end: End) => Verdict)[] = [messages, tokenTarget];

export function concludeEnd(given: TurnState, decided: End): TurnState {
  let state = given;
  let end = decided;
  for (const check of LAST) {
    const verdict = check(state, end);
    if (verdict.kind === 'goes_on') return verdict.state;
    ({ state, end } = verdict);
  }
  return ending(state, end);
}
