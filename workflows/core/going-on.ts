import type { End } from './ends.ts';
import { FRESH_TRIES, type Phase, type TurnState } from './turn-state.ts';
import type { Transition } from './transition.ts';

/** Round once more after a sample that succeeded: what a sample may spend is given back. */
export function goingOn(state: TurnState, transition: Transition): TurnState {
  return { ...state, phase: { kind: 'ready' }, tries: FRESH_TRIES, transition };
}

/** The same request once more, with other bytes or under another key. */
export function resampling(state: TurnState, transition: Transition): TurnState {
  return { ...state, phase: { kind: 'ready' }, resample: state.resample + 1, transition };
}

export function ending(state: TurnState, end: End): TurnState {
  const phase: Phase = { kind: 'ending', end };
  return { ...state, phase };
}
