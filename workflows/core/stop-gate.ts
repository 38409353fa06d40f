import type { End } from './ends.ts';
import type { StopVerdict } from './gate.ts';
import { POLICY } from './policy.ts';
import type { SampleOutcome } from './sample-outcome.ts';
import { FRESH_TRIES, type Phase, type StopGateCount, type TurnState } from './turn-state.ts';

export function stopGateCount(state: TurnState): StopGateCount {
  return state.stopGate ?? { asks: 0, blocks: 0 };
}

/** A final answer that the gate has to hear of; null: nobody wants to, or it was asked too often. */
export function beforeStop(
  state: TurnState,
  reply: SampleOutcome & { readonly kind: 'reply' },
  end: End,
): TurnState | null {
  const { asks, blocks } = stopGateCount(state);
  if (!reply.stopGate || asks >= POLICY.stopGate.asksPerTurn) return null;
  return { ...state, phase: { kind: 'stop_gate', end }, stopGate: { asks: asks + 1, blocks } };
}

/** The gate's word. A message that came while it was asked goes to the model first. */
export function stopGateAnswered(state: TurnState, verdict: StopVerdict): TurnState {
  if (state.phase.kind !== 'stop_gate') return state;
  switch (verdict.kind) {
    case 'pass':
      return state.inbox.length > 0 ? goingOn(state, 'input_arrived') : ending(state, state.phase.end);
    case 'block': {
      const { asks, blocks } = stopGateCount(state);
      return goingOn({ ...state, head: verdict.head, stopGate: { asks, blocks: blocks + 1 } }, 'stop_gate');
    }
    case 'stop':
      return ending(state, {
        reason: 'ABORTED',
        detail: 'hook_stop',
        decidedBy: 'runtime',
        signal: { name: 'hook', id: verdict.hook },
        phase: 'ending',
      });
  }
}

function goingOn(state: TurnState, transition: TurnState['transition']): TurnState {
  return { ...state, phase: { kind: 'ready' }, tries: FRESH_TRIES, transition };
}

function ending(state: TurnState, end: End): TurnState {
  const phase: Phase = { kind: 'ending', end };
  return { ...state, phase };
}
