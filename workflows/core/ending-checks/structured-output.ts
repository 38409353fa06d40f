import type { End } from '../ends.ts';
import { goingOn } from '../going-on.ts';
import { POLICY } from '../policy.ts';
import type { AnswerFault } from '../turn-counters.ts';
import type { TurnState } from '../turn-state.ts';
import type { Check } from './check.ts';

/** Name of the tool that takes the answer where a provider knows no other way. */
export const ANSWER_TOOL = 'StructuredOutput';

/** How the turn's structured answer came out; null where none was asked for, or none could come. */
export type Answered =
  | { readonly kind: 'valid'; readonly message: string }
  | { readonly kind: 'fault'; readonly fault: AnswerFault };

/** Asked for in three ways, judged in one: the faults go back to the model, and the tries are shared. */
export const structuredOutput: Check = (state, end, reply) => {
  if (state.answer.schema !== 'asks') return { kind: 'passes', state, end };
  if (reply.structured?.verdict === 'valid') {
    const answer = { ...state.answer, message: reply.head, fault: null };
    return { kind: 'passes', state: { ...succeeded(state), answer }, end };
  }
  if (reply.structured?.verdict === 'cut') return { kind: 'passes', state: settledWithout(state, 'cut'), end };
  const { retries } = state.answer;
  if (retries >= POLICY.structuredOutput.retries)
    return { kind: 'passes', state: settledWithout(state, reply.empty ? 'missing' : 'invalid'), end };
  const again = goingOn({ ...state, answer: { ...state.answer, retries: retries + 1 } }, 'structured_retry');
  // The result of a call of the tool tells the faults already.
  return { kind: 'goes_on', state: { ...again, reminders: reply.structured?.results ? [] : ['structured_output'] } };
};

function succeeded(state: TurnState): TurnState {
  const { contract } = state;
  if (contract.succeeded.includes(ANSWER_TOOL)) return state;
  return { ...state, contract: { ...contract, succeeded: [...contract.succeeded, ANSWER_TOOL] } };
}

/** Something new is to be answered: by the schema again, where it was dropped for a rerun. */
export function askedAgain(state: TurnState): TurnState {
  return state.answer.schema === 'dropped' ? { ...state, answer: { ...state.answer, schema: 'asks' } } : state;
}

/** No valid answer comes any more; one that came before is kept. */
function settledWithout(state: TurnState, fault: AnswerFault): TurnState {
  if (state.answer.schema === 'none') return state;
  return { ...state, answer: { ...state.answer, fault } };
}

/** For the end record. */
export function answered({ answer }: TurnState, end: End): Answered | null {
  if (answer.message !== null) return { kind: 'valid', message: answer.message };
  if (answer.schema === 'none' || end.reason !== 'COMPLETED') return null;
  return { kind: 'fault', fault: end.detail === 'refused' ? 'refused' : (answer.fault ?? 'missing') };
}
