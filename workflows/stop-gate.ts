import { isCancellation } from '@temporalio/workflow';
import { actingOn } from './activities.ts';
import { eventOfFailure } from './cancellation.ts';
import type { StopVerdict } from './core/gate.ts';
import type { Step } from './core/next-step.ts';
import { fenceOf } from './fence.ts';
import type { TurnArgs } from './messages.ts';

type Heard = { kind: 'stop_gate_answered'; verdict: StopVerdict } | ReturnType<typeof eventOfFailure>;

/** Hooks may take minutes; a cancel does not wait for them. `head` is the reply that is asked about. */
export async function askStopGate(
  args: TurnArgs,
  head: string,
  { asks, blocks }: Step & { kind: 'stopGate' },
): Promise<Heard> {
  try {
    const { stopGate } = actingOn(args);
    const request = { fence: fenceOf(args), head, asks, blocks };
    const verdict = await stopGate.executeWithOptions({ summary: 'stop gate' }, [request]);
    return { kind: 'stop_gate_answered', verdict };
  } catch (error) {
    if (isCancellation(error)) return { kind: 'stop_gate_answered', verdict: { kind: 'pass' } };
    return eventOfFailure(error);
  }
}
