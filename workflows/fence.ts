import { workflowInfo } from '@temporalio/workflow';
import type { RunIdentity } from './core/requests.ts';
import type { TurnArgs } from './messages.ts';

/** Which run of the turn commits, as data for the store: the workflow never branches on it. */
export function fenceOf({ turn }: TurnArgs): RunIdentity {
  const { runId, originalExecutionRunId } = workflowInfo();
  return { turn, run: runId, isReset: runId !== originalExecutionRunId };
}
