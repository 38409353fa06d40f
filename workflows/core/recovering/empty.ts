import { prepareEnd } from '../ending-checks/run-checks.ts';
import { endOfReply } from '../endings.ts';
import { ending, goingOn, resampling } from '../going-on.ts';
import { POLICY } from '../policy.ts';
import type { Reply } from '../sample-outcome.ts';
import { resampledTries, type TurnState } from '../turn-state.ts';

/** Nothing was said: asked again; after tool results also told so once, since the work may simply be over. */
export function emptyReply(state: TurnState, reply: Reply): TurnState | null {
  if (!reply.empty) return null;
  const tries = resampledTries(state.tries);
  const { empty, emptyNudges } = tries;
  if (empty < POLICY.empty.resamples) {
    return { ...resampling(state, 'resampled_empty'), tries: { ...tries, empty: empty + 1 } };
  }
  if (state.follows === 'input') return ending(state, endOfReply(state, 'empty'));
  if (emptyNudges < POLICY.empty.nudges) {
    const nudged = { ...state, reminders: ['empty_reply'] as const };
    return { ...goingOn(nudged, 'nudged_empty'), tries: { ...tries, emptyNudges: emptyNudges + 1 } };
  }
  const next = prepareEnd(state, reply, 'empty_answer');
  // Whoever objects is answered by a reply of its own, and silence has given no budget back; a message is a new matter.
  return state.inbox.length > 0 ? next : { ...next, tries };
}
