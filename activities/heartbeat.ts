import { Context } from '@temporalio/activity';
import type { Span } from '../workflows/core/delayed.ts';
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
  /** When it said this, ms since the epoch. */
  readonly atMs: number;
  /** When nobody was there before it, and between those before it. */
  readonly away: readonly Span[];
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
  const [lost, away] = [lostSoFar(), awaySoFar()];
  const beat = (over: boolean) =>
    context.heartbeat({ attempt, n, lost, over, atMs: Date.now(), away } satisfies HeartbeatFacts);
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

/**
 * When nobody was there to work on this: from the last word of the attempt before, or from when the engine wanted
 * this one begun. Gaps that any retry has do not count.
 */
export function awaySoFar(now = Date.now()): readonly Span[] {
  const { currentAttemptScheduledTimestampMs: wanted, heartbeatDetails, isLocal } = Context.current().info;
  if (isLocal) return [];
  const told = heartbeatDetails as HeartbeatFacts | undefined;
  const fromMs = Math.min(wanted, told?.atMs ?? wanted);
  const before = told?.away ?? [];
  return now - fromMs >= POLICY.away.fromMs ? [...before, { fromMs, toMs: now }] : before;
}

/** True when somebody asked for a cancel; a shutdown, a time-out or a reset is not one. */
export function isCancelRequested(context: Context = Context.current()): boolean {
  return context.cancellationDetails?.cancelRequested === true;
}
