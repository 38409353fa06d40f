import { endOfReply } from '../endings.ts';
import type { End } from '../ends.ts';
import type { Reply } from '../sample-outcome.ts';
import { askStopGate } from '../stop-gate.ts';
import type { TurnState } from '../turn-state.ts';
import type { Check } from './check.ts';
import { completionContract } from './contract.ts';
import { concludeEnd } from './last-checks.ts';
import { messages } from './messages.ts';
import { structuredOutput } from './structured-output.ts';
import { todoGate } from './todo-gate.ts';

/** In this order, and then the last checks; the first that says "go on" wins. */
const CHECKS: readonly Check[] = [structuredOutput, completionContract, todoGate, messages, askStopGate];

/** A final answer, or silence that stands for one: the turn ends on it, unless a check has something against it. */
export function prepareEnd(
  given: TurnState,
  reply: Reply,
  how: 'final_answer' | 'empty_answer' = 'final_answer',
): TurnState {
  let state = given;
  let end: End = endOfReply(state, how);
  for (const check of CHECKS) {
    const verdict = check(state, end, reply);
    if (verdict.kind === 'goes_on') return verdict.state;
    ({ state, end } = verdict);
  }
  return concludeEnd(state, end);
}
