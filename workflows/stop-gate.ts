import { isCancellation } from '@temporalio/workflow';
import { actingOn } from './activities.ts';
import type { Heard, Turn } from './calls.ts';
import { eventOfFailure } from './cancellation.ts';
import type { Step } from './core/next-step.ts';
import type { Purpose } from './core/requests.ts';
import { pressing } from './core/urgent.ts';
import { cutShort } from './cut-short.ts';
import { fenceOf } from './fence.ts';

/** Hooks may take minutes; neither a cancel nor a message that can't wait waits for them. */
export async function askStopGate(turn: Turn, { asks, blocks }: Step & { kind: 'stopGate' }): Promise<Heard> {
  const { stopGate } = actingOn(turn.args);
  const request = { fence: fenceOf(turn.args), head: turn.state().head, asks, blocks };
  const as = (purpose: Purpose) => () =>
    stopGate.executeWithOptions({ summary: 'stop gate' }, [{ ...request, purpose }]);
  try {
    const verdict = await cutShort(() => pressing(turn.state()) !== null, as('ask'), as('settle'));
    return { kind: 'stop_gate_answered', verdict };
  } catch (error) {
    if (isCancellation(error)) return { kind: 'stop_gate_answered', verdict: { kind: 'pass' } };
    return eventOfFailure(error);
  }
}
