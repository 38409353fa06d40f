import type { End } from './ends.ts';
import type { Fuse } from './gate.ts';
import { outputCap } from './output-cap.ts';
import { endPhaseOf, type TurnState } from './turn-state.ts';

/** The end that a reply without usable calls leads to. */
export function endOfReply(
  state: TurnState,
  how: 'final_answer' | 'refused' | 'output_limit' | 'empty' | 'empty_answer' | 'cut_calls',
): End {
  const phase = 'ending' as const;
  switch (how) {
    case 'final_answer':
      return { reason: 'COMPLETED', detail: how, decidedBy: 'model', signal: { name: 'model_stop' }, phase };
    case 'refused':
      return { reason: 'COMPLETED', detail: how, decidedBy: 'model', signal: { name: 'model_refusal' }, phase };
    case 'output_limit': {
      const allowed = outputCap(state);
      const signal = { name: 'limit', limit: 'output_tokens', allowed, used: allowed } as const;
      return { reason: 'MAX_TOKENS', detail: how, decidedBy: 'runtime', signal, phase };
    }
    case 'empty_answer': {
      const signal = { name: 'retries_spent', cause: 'empty_reply', used: state.tries.empty } as const;
      return { reason: 'COMPLETED', detail: 'final_answer', decidedBy: 'model', signal, phase };
    }
    case 'empty':
      return modelError('empty_reply', state.tries.empty);
    case 'cut_calls':
      return modelError('cut_calls', state.tries.cutCalls);
  }
}

function modelError(cause: string, used: number): End {
  return {
    reason: 'ERROR',
    detail: 'model',
    decidedBy: 'runtime',
    signal: { name: 'retries_spent', cause, used },
    phase: 'sampling',
  };
}

/** What an activity failed on for good: a refused write, a broken tool host, a transcript with a hole, our own code. */
export type FaultSource = keyof typeof FAULTS;

const FAULTS = {
  store: 'storage',
  tool: 'tool_infrastructure',
  context: 'context_unusable',
  code: 'internal',
} as const;

export function endOfCode(state: TurnState, type: string, source: FaultSource): End {
  const detail = FAULTS[source];
  return {
    reason: 'ERROR',
    detail,
    decidedBy: 'runtime',
    signal: { name: 'fault', type },
    phase: endPhaseOf(state.phase),
  };
}

/** A person's reject or cancel, or nobody's answer in time, ends the turn; a message lets it go on. */
export function endOfFuse({ cause, approval }: Fuse): End | null {
  const signal = { name: 'approval', id: approval } as const;
  const phase = 'gate' as const;
  switch (cause) {
    case 'rejected':
      return { reason: 'ABORTED', detail: 'permission_rejected', decidedBy: 'user', signal, phase };
    case 'cancelled':
      return { reason: 'ABORTED', detail: 'permission_cancelled', decidedBy: 'user', signal, phase };
    case 'expired':
      return { reason: 'BLOCKED', detail: 'awaiting_approval', decidedBy: 'runtime', signal, phase };
    case 'message':
      return null;
  }
}

/** The model said, by a call, what it waits for. */
export function endOfReport(detail: 'awaiting_input' | 'external_dependency'): End {
  return { reason: 'BLOCKED', detail, decidedBy: 'model', signal: { name: 'model_report' }, phase: 'waiting' };
}

/** Recovery stamps this one: the turn closes without an end record of its own. */
export function endOfUnknownEffect(): End {
  return {
    reason: 'INTERRUPTED',
    detail: 'unknown_outcome',
    decidedBy: 'runtime',
    signal: { name: 'fault', type: 'turn.unknown_outcome' },
    phase: 'tools',
  };
}
