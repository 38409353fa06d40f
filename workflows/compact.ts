import { isCancellation } from '@temporalio/workflow';
import { store } from './activities.ts';
import { eventOfFailure } from './cancellation.ts';
import type { CompactionCause, CompactOutcome } from './core/compact-outcome.ts';
import { cameOf, type Span } from './core/delayed.ts';
import type { TurnState } from './core/turn-state.ts';
import { fenceOf } from './fence.ts';
import type { TurnArgs } from './messages.ts';

interface Compacted {
  readonly kind: 'compacted';
  readonly outcome: CompactOutcome;
  readonly dice: number;
  readonly away?: readonly Span[];
}

/** One try of a summary; what follows from it is the core's to say. */
export async function compact(
  args: TurnArgs,
  { step, head, context, limits, model, resample }: TurnState,
  cause: CompactionCause,
): Promise<Compacted | ReturnType<typeof eventOfFailure>> {
  const { agent, tools } = args;
  const { shrinks } = context;
  const { contextTokens } = limits;
  try {
    const result = await store.compact.executeWithOptions({ summary: `compaction in step ${step}` }, [
      { fence: fenceOf(args), agent, tools, step, head, cause, shrinks, model, resample, contextTokens },
    ]);
    const { came: outcome, away } = cameOf<CompactOutcome>(result);
    return { kind: 'compacted', outcome, dice: Math.random(), away };
  } catch (error) {
    if (isCancellation(error)) return { kind: 'compacted', outcome: { kind: 'cut' }, dice: 0 };
    return eventOfFailure(error);
  }
}
