import { ActivityCancellationType, proxyActivities, proxyLocalActivities, workflowInfo } from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';
import { POLICY } from './core/policy.ts';
import type { TurnArgs } from './messages.ts';

/** Serves lost processes and a store that is away, nothing else: failures of a provider are values. */
const retry = { initialInterval: '250ms', backoffCoefficient: 2, maximumInterval: '10s' } as const;

const heartbeating = {
  startToCloseTimeout: '24h',
  heartbeatTimeout: POLICY.heartbeat.timeoutMs,
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  retry,
} as const;

const { sample, compact, runTool } = proxyActivities<Activities>(heartbeating);
const { endTurn } = proxyActivities<Activities>({
  startToCloseTimeout: '30s',
  heartbeatTimeout: '10s',
  retry,
  summary: 'end of the turn',
});

/** A look is over in a moment; one that died with its worker is missed by its heartbeat. */
const { lookAtWait } = proxyActivities<Activities>({
  startToCloseTimeout: '30s',
  heartbeatTimeout: '10s',
  retry,
  summary: 'look at a wait',
});

const { stopAgents } = proxyActivities<Activities>({
  startToCloseTimeout: '30s',
  retry,
  summary: 'sub-agents are cancelled',
});

/** Activities of the turn that any worker may run. */
export const store = { sample, compact, runTool, lookAtWait, stopAgents, endTurn };

type Acting = ReturnType<typeof proxyActivities<Activities>>;

/** Activities that need the session's files: on the queue of a machine that has them, if one comes in time. */
export function actingOn({
  workspaceQueue: taskQueue,
  state,
}: TurnArgs): Pick<Acting, 'runTool' | 'gate' | 'settleApproval' | 'stopGate'> {
  const elsewhere =
    taskQueue === workflowInfo().taskQueue ? {} : { taskQueue, scheduleToStartTimeout: state.limits.workspaceWaitMs };
  return proxyActivities<Activities>({ ...heartbeating, ...elsewhere });
}

/** For quick readers: called beside the decision, in the same workflow task, by the worker that decides. */
export const atOnce = proxyLocalActivities<Pick<Activities, 'runTool'>>({
  startToCloseTimeout: POLICY.tools.quickMs,
  retry: { maximumAttempts: 1 },
  summary: 'quick call',
});

/** The same, for taking calls back: all of it, waiting for a worker included, within the time that is left. */
export function undoing(queue: string, forMs: number): Pick<Acting, 'undoCall'> {
  const elsewhere = queue === workflowInfo().taskQueue ? {} : { taskQueue: queue };
  return proxyActivities<Activities>({
    ...heartbeating,
    ...elsewhere,
    scheduleToCloseTimeout: forMs,
    summary: 'take a call back',
  });
}

/**
 * Short commits of the driver, but for hooks that are asked about a prompt. One that died with its worker is
 * missed by its heartbeat.
 */
export const driver = proxyActivities<Activities>({
  startToCloseTimeout: '10m',
  heartbeatTimeout: '10s',
  retry,
  summary: 'the queue of the session',
});

/** Recovery may have a lot to look at; it beats, so that it goes on soon after its worker died. */
export const recovery = proxyActivities<Activities>({
  startToCloseTimeout: '5m',
  heartbeatTimeout: POLICY.heartbeat.timeoutMs,
  retry,
  summary: 'recovery',
});
