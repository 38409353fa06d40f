import { goingOn } from '../going-on.ts';
import { POLICY } from '../policy.ts';
import type { Reply } from '../sample-outcome.ts';
import { resampledTries, type TurnState } from '../turn-state.ts';

/** The stream says that calls come, and brings none: told so once; after that the text is the answer. */
export function calllessReply(state: TurnState, reply: Reply): TurnState | null {
  const { structured } = reply;
  const isAnswer = structured !== undefined && (structured.verdict === 'valid' || structured.results > 0);
  if (reply.finish !== 'tool_calls' || isAnswer) return null;
  const callless = state.tries.callless + 1;
  if (callless > POLICY.callless.nudges) return null;
  const told = goingOn({ ...state, reminders: ['calls_missing'] }, 'calls_missing');
  return { ...told, tries: { ...resampledTries(state.tries), callless } };
}
