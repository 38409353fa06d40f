import type { Check } from './ending-checks/check.ts';
import { concludeEnd } from './ending-checks/last-checks.ts';
import { askedAgain } from './ending-checks/structured-output.ts';
import type { StopVerdict } from './gate.ts';
import { ending, goingOn } from './going-on.ts';
import { POLICY } from './policy.ts';
import type { StopGateCount } from './turn-counters.ts';
import type { TurnState } from './turn-state.ts';

export function stopGateCount(state: TurnState): StopGateCount {
  return state.stopGate ?? { asks: 0, blocks: 0 };
}

/** A final answer that the gate has to hear of, unless nobody wants to, or it was asked too often. */
export const askStopGate: Check = (state, end, reply) => {
  const { asks, blocks } = stopGateCount(state);
  if (!reply.stopGate || state.rules.goal === 'active' || asks >= POLICY.stopGate.asksPerTurn)
    return { kind: 'passes', state, end };
  return {
    kind: 'goes_on',
    state: { ...state, phase: { kind: 'stop_gate', end }, stopGate: { asks: asks + 1, blocks } },
  };
};

/** The gate's word; without objection the last checks follow. */
export function stopGateAnswered(state: TurnState, verdict: StopVerdict): TurnState {
  if (state.phase.kind !== 'stop_gate') return state;
  switch (verdict.kind) {
    case 'pass':
      return concludeEnd(state, state.phase.end);
    case 'block': {
      const { asks, blocks } = stopGateCount(state);
      const blocked = { ...state, head: verdict.head, stopGate: { asks, blocks: blocks + 1 } };
      return askedAgain(goingOn(blocked, 'stop_gate'));
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
