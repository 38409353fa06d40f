import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  isCancellation,
  TimeoutFailure,
} from '@temporalio/workflow';
import type { FaultSource } from './core/endings.ts';

/** Whether somebody has asked for this workflow's cancellation; also true in the very activation that brings it. */
export function cancelRequested(): boolean {
  return CancellationScope.current().consideredCancelled;
}

/** Comes back once somebody has asked for this workflow's cancellation; never otherwise. */
export async function cancelHeard(): Promise<void> {
  try {
    await CancellationScope.current().cancelRequested;
  } catch (error) {
    if (!isCancellation(error)) throw error;
  }
}

const SENTENCES: Readonly<Record<string, string>> = {
  'turn.already_ended': 'This turn has its end already.',
  'turn.fenced': 'A newer run of this turn has taken over.',
  'approval.stale': 'This turn does not wait for that approval.',
  'turn.unknown_outcome': 'A tool call may or may not have taken effect, and nobody can say; recovery stamps the end.',
  'turn.workspace_lost': 'No worker has the workspace of this turn; recovery stamps the end.',
};

/** Closes a turn as Failed, by a dotted type and a fixed sentence; never retried. */
export function turnFailure(type: string): ApplicationFailure {
  const failure = ApplicationFailure.nonRetryable(SENTENCES[type] ?? 'The turn ended; its end row says why.', type);
  // A stack names folders of the machine that ran this.
  failure.stack = `${failure.name}: ${failure.message}`;
  return failure;
}

const SOURCES: Readonly<Record<string, FaultSource>> = { store: 'store', tool: 'tool', context: 'context' };

/** The one place where a failed activity becomes something the core can hear; what ends the run at once is thrown. */
export function eventOfFailure(error: unknown): { kind: 'failed'; type: string; source: FaultSource } {
  if (!(error instanceof ActivityFailure)) throw error;
  const { cause } = error;
  if (cause instanceof TimeoutFailure && cause.timeoutType === 'SCHEDULE_TO_START') {
    throw turnFailure('turn.workspace_lost');
  }
  const type = cause instanceof ApplicationFailure ? (cause.type ?? 'activity.unnamed') : 'activity.lost';
  if (type === 'turn.already_ended' || type === 'turn.fenced') throw turnFailure(type);
  return { kind: 'failed', type, source: SOURCES[type.split('.')[0] ?? ''] ?? 'code' };
}
