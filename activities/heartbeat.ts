import { Context } from '@temporalio/activity';
import { POLICY } from '../workflows/core/policy.ts';

/** Facts that the next attempt finds if this one dies: ids and counts only. */
export interface HeartbeatFacts {
  readonly attempt: string;
  /** Attempts of this activity that were lost with their worker so far. */
  readonly lost: number;
  /** This attempt ended by itself, so whoever comes next has not lost it. */
  readonly over: boolean;
}

/** Beats while `work` runs, so that a cancel arrives and a dead worker is noticed. */
export async function beating<T>(facts: Omit<HeartbeatFacts, 'over'>, work: () => Promise<T>): Promise<T> {
  const context = Context.current();
  const beat = (over: boolean) => context.heartbeat({ ...facts, over } satisfies HeartbeatFacts);
  beat(false);
  const timer = setInterval(() => beat(false), POLICY.heartbeat.everyMs);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    beat(true);
  }
}

/** How many attempts before this one died without a word. */
export function lostSoFar(): number {
  const before = Context.current().info.heartbeatDetails as HeartbeatFacts | undefined;
  if (!before) return 0;
  return before.over ? before.lost : before.lost + 1;
}

/** True when somebody asked for a cancel; a shutdown, a time-out or a reset is not one. */
export function isCancelRequested(context: Context = Context.current()): boolean {
  return context.cancellationDetails?.cancelRequested === true;
}
