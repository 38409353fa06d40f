import { ActivityFailure, CancellationScope, condition, isCancellation } from '@temporalio/workflow';
import { cancelRequested } from './cancellation.ts';

/**
 * Runs an activity that a message may cut short, and nothing else with it. What it comes back with counts, be it the
 * cut or what was faster. One that comes back with nothing (its worker is gone, or none had begun) may have committed
 * something all the same: `settle` says what. Where the message was there before it, only that is asked.
 */
export async function cutShort<T>(isCut: () => boolean, ask: () => Promise<T>, settle: () => Promise<T>): Promise<T> {
  if (isCut()) return await settle();
  const working = new CancellationScope();
  const watching = new CancellationScope();
  void watching.run(() => condition(isCut)).then(() => working.cancel(), unlessCancelled);
  try {
    return await working.run(ask);
  } catch (error) {
    if (!(error instanceof ActivityFailure) || !isCut() || cancelRequested()) throw error;
  } finally {
    watching.cancel();
  }
  return await settle();
}

function unlessCancelled(error: unknown): void {
  if (!isCancellation(error)) throw error;
}
