import { undecided, undoable } from './batch.ts';
import type { CompactionCause } from './compact-outcome.ts';
import type { End } from './ends.ts';
import { absoluteEnd, limitReached, withinTurn } from './limits.ts';
import { mayRaise, outputCap } from './output-cap.ts';
import { noProgress } from './stationarity.ts';
import { POLICY } from './policy.ts';
import { stopGateCount } from './stop-gate.ts';
import { type AskedEnd, type BatchCall, callsOf, type Phase, type Reminder, type TurnState } from './turn-state.ts';
import type { Transition } from './transition.ts';

/** What the loop does next, as a value. */
export type Step =
  | {
      readonly kind: 'sample';
      readonly inputs: readonly string[];
      readonly results: number;
      readonly reminders: readonly Reminder[];
      readonly transition: Transition;
      /** False once the model has repeated itself too often: the next reply is taken as it is. */
      readonly watchRepetition: boolean;
      readonly model: TurnState['model'];
      readonly outputTokens: number;
      /** What becomes of a text that the cap cuts. */
      readonly onCut: 'drop' | 'keep';
      readonly schema: 'asked' | 'none';
    }
  | { readonly kind: 'compact'; readonly cause: CompactionCause }
  | { readonly kind: 'gate'; readonly ordinal: number }
  | { readonly kind: 'awaitDecision'; readonly ordinal: number; readonly approval: string; readonly forMs: number }
  | { readonly kind: 'runTools' }
  | { readonly kind: 'rest'; readonly forMs: number }
  | { readonly kind: 'stopGate'; readonly asks: number; readonly blocks: number }
  | { readonly kind: 'undo'; readonly ordinals: readonly number[]; readonly forMs: number }
  | { readonly kind: 'finish'; readonly end: End };

/** Looks at the state and says what to do; changes nothing. `now` is ms since the epoch. */
export function nextStep(state: TurnState, now: number): Step {
  const { phase } = state;
  // Asked for before the end was decided: it wins over whatever the step came back with.
  if (state.asked) return cleanUp(state.asked, phase, now);
  if (phase.kind === 'ending') return { kind: 'finish', end: phase.end };
  switch (phase.kind) {
    case 'ready': {
      const end = limitReached(state) ?? noProgress(state);
      return end ? { kind: 'finish', end } : sample(state);
    }
    case 'carried':
      return { kind: 'runTools' };
    case 'compacting': {
      const end = limitReached(state);
      return end ? { kind: 'finish', end } : { kind: 'compact', cause: phase.cause };
    }
    case 'compaction_resting':
    case 'resting':
      return { kind: 'rest', forMs: Math.max(0, withinTurn(state, phase.untilMs) - now) };
    case 'stop_gate':
      return { kind: 'stopGate', ...stopGateCount(state) };
    case 'batch':
      return batchStep(state, phase.calls, now);
  }
}

/** Before it ends: what the cancel cut in the middle is taken back, while there is time for cleaning up. */
function cleanUp({ end, atMs }: AskedEnd, phase: Phase, now: number): Step {
  const ordinals = end.reason === 'ABORTED' ? undoable(callsOf(phase)) : [];
  const forMs = atMs + POLICY.cleanup.deadlineMs - now;
  return ordinals.length > 0 && forMs > 0 ? { kind: 'undo', ordinals, forMs } : { kind: 'finish', end };
}

/** Calls are judged one after the other, in the model's order; only then do they run. */
function batchStep(state: TurnState, calls: readonly BatchCall[], now: number): Step {
  const open = undecided(calls);
  if (!open) return { kind: 'runTools' };
  const { ordinal } = open.ref;
  if (open.state !== 'asking') return { kind: 'gate', ordinal };
  const end = absoluteEnd(state, now);
  if (end) return { kind: 'finish', end };
  const forMs = Math.max(0, withinTurn(state, open.untilMs) - now);
  return { kind: 'awaitDecision', ordinal, approval: open.approval, forMs };
}

function sample(state: TurnState): Step {
  return {
    kind: 'sample',
    inputs: state.inbox,
    results: state.unappendedResults,
    reminders: state.reminders,
    transition: state.transition,
    watchRepetition: state.tries.doom < POLICY.doomLoop.resamples,
    model: state.model,
    outputTokens: outputCap(state),
    onCut: mayRaise(state) ? 'drop' : 'keep',
    schema: state.answer.schema === 'asks' ? 'asked' : 'none',
  };
}
