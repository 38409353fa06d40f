import type { End } from '../ends.ts';
import type { Reply } from '../sample-outcome.ts';
import type { TurnState } from '../turn-state.ts';

/** One look at a turn that is about to end: it goes on after all, or the next check is asked. */
export type Check = (state: TurnState, end: End, reply: Reply) => Verdict;

export type Verdict =
  | { readonly kind: 'goes_on'; readonly state: TurnState }
  | { readonly kind: 'passes'; readonly state: TurnState; readonly end: End };
