import type { Decider } from '../../workflows/core/ends.ts';
import type { StreamEnd } from '../../workflows/core/journal.ts';
import type { ProviderFailure, Usage } from '../../workflows/core/sample-outcome.ts';
import type { CutBy } from './cut-by.ts';
import type { NewEvent } from './events.ts';

/** The attempt whose stream it is. */
interface StreamOf {
  readonly fence: { readonly turn: string };
  readonly attempt: string;
  readonly step: number;
}

type HowEnded = Exclude<StreamEnd, 'cancelled'> | CutBy;

/** The stream layer's end row. */
export function streamEnded(
  at: StreamOf & { readonly usage: Usage },
  how: HowEnded,
  failure: ProviderFailure['kind'] | null,
  message: string | null,
  note: string | null = null,
): NewEvent {
  const reason = typeof how === 'string' ? how : 'cancelled';
  return {
    key: `stream/${at.attempt}`,
    turn: at.fence.turn,
    event: {
      kind: 'stream.ended',
      layer: 'stream',
      step: at.step,
      attempt: at.attempt,
      reason,
      detail: failure,
      decidedBy: deciderOf(how),
      signal: failure ?? (typeof how !== 'string' && how.kind === 'message' ? 'message' : reason),
      failure,
      note,
      message,
      usage: at.usage,
    },
  };
}

function deciderOf(how: HowEnded): Decider {
  if (typeof how !== 'string') return how.kind === 'message' ? 'user' : how.decidedBy;
  return how === 'stop' || how === 'tool_calls' || how === 'content_filter' ? 'model' : 'runtime';
}

/** Whoever showed the attempt's text takes it back. */
export function attemptDiscarded({ attempt, step, fence }: StreamOf): NewEvent {
  return {
    key: `discarded/${attempt}`,
    turn: fence.turn,
    event: { kind: 'attempt.discarded', layer: 'stream', step, attempt },
  };
}
