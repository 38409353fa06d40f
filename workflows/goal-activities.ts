import { proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';
import { checksMostMs } from './core/goal/goal-limits.ts';
import { POLICY } from './core/policy.ts';

const retry = { initialInterval: '250ms', backoffCoefficient: 2, maximumInterval: '10s' } as const;

const { loadGoal, lookGoal, recordGoal, directGoal, fireWake } = proxyActivities<Activities>({
  startToCloseTimeout: '1m',
  heartbeatTimeout: '10s',
  retry,
  summary: 'the goal and its session',
});

const judging = {
  startToCloseTimeout: '2h',
  heartbeatTimeout: POLICY.heartbeat.timeoutMs,
  retry,
} as const;

const { judgeGoal } = proxyActivities<Activities>({ ...judging, summary: 'the judge' });
const { doubtGoal } = proxyActivities<Activities>({ ...judging, summary: 'a sceptic' });

/** Activities of the goal that any worker may run. */
export const goals = { loadGoal, lookGoal, recordGoal, directGoal, fireWake, judgeGoal, doubtGoal };

/** Those that need the session's files: on the queue of a machine that has them, if one comes in time. */
export function onGoalFiles(
  taskQueue: string,
): Pick<ReturnType<typeof proxyActivities<Activities>>, 'checkGoal' | 'goalStopGate'> {
  const elsewhere =
    taskQueue === workflowInfo().taskQueue
      ? {}
      : { taskQueue, scheduleToStartTimeout: POLICY.goal.checks.workspaceWaitMs };
  const { checkGoal } = proxyActivities<Activities>({
    ...judging,
    ...elsewhere,
    startToCloseTimeout: checksMostMs(),
    summary: 'checks of the goal',
  });
  const { goalStopGate } = proxyActivities<Activities>({ ...judging, ...elsewhere, summary: 'the stop gate' });
  return { checkGoal, goalStopGate };
}
