import { Context } from '@temporalio/activity';
import { POLICY } from '../workflows/core/policy.ts';

/** Facts that the next attempt finds if this one dies: ids and counts only. */
export interface HeartbeatFacts {
  readonly attempt: string;
  /** The engine's number of that attempt. */
  readonly n: number;
  /** Attempts before it that were lost with their worker. */
  readonly lost: number;
  /** It ended by itself, so whoever comes next has not lost it. */
  readonly over: boolean;
}

/**
 * Beats while `work` runs, so that a cancel arrives and a dead worker is noticed. Quick work never beats:
 * each beat is a request to the engine.
 */
export async function beating<T>(attempt: string, work: () => Promise<T>): Promise<T> {
  const context = Context.current();
  const { attempt: n, isLocal } = context.info;
  // A local activity is a part of its workflow task: nobody waits for its beats.
  if (isLocal) return await work();
  const lost = lostSoFar();
  const beat = (over: boolean) => context.heartbeat({ attempt, n, lost, over } satisfies HeartbeatFacts);
  const timer = setInterval(() => beat(false), POLICY.heartbeat.everyMs);
  try {
    return await work();
  } catch (error) {
    beat(true);
    throw error;
  } finally {
    clearInterval(timer);
  }
}

/** How many attempts before this one died without a word. */
export function lostSoFar(): number {
  const { attempt, heartbeatDetails } = Context.current().info;
  const told = heartbeatDetails as HeartbeatFacts | undefined;
  if (!told) return attempt - 1;
  return told.lost + (attempt - told.n) - (told.over ? 1 : 0);
}

/** True when somebody asked for a cancel; a shutdown, a time-out or a reset is not one. */
export function isCancelRequested(context: Context = Context.current()): boolean {
  return context.cancellationDetails?.cancelRequested === true;
}
