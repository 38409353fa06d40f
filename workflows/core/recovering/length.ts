import { endOfReply } from '../endings.ts';
import { ending, goingOn, resampling } from '../going-on.ts';
import { mayRaise } from '../output-cap.ts';
import { POLICY } from '../policy.ts';
import type { Reply } from '../sample-outcome.ts';
import { FRESH_OUTPUT, type OutputTries } from '../turn-counters.ts';
import { resampledTries, type TurnState } from '../turn-state.ts';

/** A sample that ended normally gives the salvage back. */
export function endedNormally(output: OutputTries): OutputTries {
  return output.cap === 'refused' ? { cap: 'refused', continued: 0 } : FRESH_OUTPUT;
}

/** The provider does not take a request with the raised cap: the usual one, once more. */
export function refuseCap(state: TurnState): TurnState | null {
  if (state.output.cap !== 'raised' || state.output.continued > 0) return null;
  return { ...resampling(state, 'output_cap_refused'), output: { ...state.output, cap: 'refused' } };
}

/** Cut by its length, without calls: a raised cap, then in pieces, then the end with the text so far. */
export function lengthStop(state: TurnState, reply: Reply): TurnState | null {
  // With a schema, what is not cut is whole whatever the label says, and judged as it is.
  if (reply.finish !== 'length' || (reply.structured && reply.structured.verdict !== 'cut')) return null;
  if (mayRaise(state)) {
    const again = resampling({ ...state, tries: resampledTries(state.tries) }, 'output_cap_raised');
    return { ...again, output: { ...state.output, cap: 'raised' } };
  }
  if (reply.structured) return answerCut(state);
  const { continued } = state.output;
  if (continued >= POLICY.length.continuations) return ending(state, endOfReply(state, 'output_limit'));
  return {
    ...goingOn(state, 'output_continued'),
    reminders: ['output_cut'],
    output: { ...state.output, continued: continued + 1 },
  };
}

/** Half of a JSON text is worth nothing: never kept, asked for again from its start. Null: given up. */
function answerCut(state: TurnState): TurnState | null {
  const { continued } = state.output;
  if (continued >= POLICY.length.continuations) return null;
  return {
    ...resampling({ ...state, tries: resampledTries(state.tries) }, 'answer_cut'),
    // Once is enough: the prompt does not grow from one try to the next.
    reminders: continued === 0 ? ['answer_cut'] : [],
    output: { ...state.output, continued: continued + 1 },
  };
}
