import {
  type Client,
  isGrpcServiceError,
  type WorkflowExecutionDescription,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import {
  answerWaits,
  approvalAnswered,
  goalCommand,
  goalWorkflowId,
  lookOfGoal,
  lookOfSession,
  turnState,
  turnWorkflowId,
  type WakeArgs,
} from '../workflows/messages.ts';
import type { GoalCommand } from '../workflows/core/goal/goal-event.ts';
import type { TurnState } from '../workflows/core/turn-state.ts';
import type { GoalSchedule } from '../activities/store/schema.ts';
import { EngineAway } from './faults.ts';
import { changeSchedule, createSchedule } from './goal-schedules.ts';

export const ANSWER_LIMIT_MS = 5_000;

/** What the engine says of a turn's workflow. `unknown`: it knows no such workflow. */
export type EngineState = 'running' | 'completed' | 'canceled' | 'failed' | 'terminated' | 'timed_out' | 'unknown';

/** An activity that has not come back. Times are ISO. */
export interface PendingActivity {
  readonly type: string;
  readonly attempt: number;
  /** When its attempt started; null while none does. */
  readonly startedAt: string | null;
  /** Dotted type of what the attempt before failed with. */
  readonly failure: string | null;
}

export interface TurnActivity {
  readonly engine: EngineState;
  /** Null where no worker answers for it. */
  readonly state: TurnState | null;
  readonly pending: readonly PendingActivity[];
}

/** The few things a client asks of the engine. Each throws EngineAway when it does not answer in time. */
export interface ClientEngine {
  look(session: string): Promise<void>;
  /** False: the engine has no such turn running. */
  cancel(turn: string): Promise<boolean>;
  stateOf(turn: string): Promise<EngineState>;
  /** What the engine and the turn's own workflow say of it. */
  activityOf(turn: string): Promise<TurnActivity>;
  /** How many workers ask this queue for workflows. */
  workersOn(taskQueue: string): Promise<number>;
  /** Tells a turn that an approval has its answer. False: it does not wait for it, not yet or not any more. */
  approvalAnswered(turn: string, approval: string): Promise<boolean>;
  /** Tells a goal that something for it lies in the store, starting its workflow where it is not running. */
  lookGoal(goal: string): Promise<void>;
  /** The status that a command has brought about; null where the goal has come to its end. */
  commandGoal(goal: string, command: GoalCommand): Promise<string | null>;
  /** Has a goal fired at these times; a Schedule that is there already stays. */
  schedule(args: WakeArgs, schedule: GoalSchedule): Promise<void>;
  changeSchedule(goal: string, change: 'pause' | 'resume' | 'cancel'): Promise<boolean>;
  check(): Promise<void>;
}

export function clientEngine(client: Client, taskQueue: string, limitMs: number): ClientEngine {
  const ask: Ask = (work) => asked(client, limitMs, work);
  return {
    async look(session) {
      await ask(() => client.workflow.signalWithStart('sessionWorkflow', lookOfSession(taskQueue, session)));
    },
    async cancel(turn) {
      const found = await ifKnown(ask, () => client.workflow.getHandle(turnWorkflowId(turn)).cancel());
      return found !== null;
    },
    async stateOf(turn) {
      const found = await ifKnown(ask, () => client.workflow.getHandle(turnWorkflowId(turn)).describe());
      return found === null ? 'unknown' : stateOfStatus(found.status.name);
    },
    activityOf: (turn) => activityOf(client, ask, turn),
    async workersOn(queue) {
      const request = { namespace: client.options.namespace, taskQueue: { name: queue }, taskQueueType: WORKFLOWS };
      const { pollers } = await ask(() => client.workflowService.describeTaskQueue(request));
      return pollers?.length ?? 0;
    },
    async approvalAnswered(turn, approval) {
      try {
        const handle = client.workflow.getHandle(turnWorkflowId(turn));
        const taken = await ifKnown(ask, () => handle.executeUpdate(approvalAnswered, { args: [approval] }));
        return taken !== null;
      } catch (error) {
        if (error instanceof WorkflowUpdateFailedError) return false;
        if (!(error instanceof WorkflowUpdateRPCTimeoutOrCancelledError)) throw error;
        // No worker is there now; a signal waits for one.
        await ifKnown(ask, () => client.workflow.getHandle(turnWorkflowId(turn)).signal(answerWaits, approval));
        return true;
      }
    },
    lookGoal: (goal) => ask(() => signalGoal(client, taskQueue, goal)),
    commandGoal: (goal, command) => commandGoal(client, taskQueue, ask, goal, command),
    schedule: (args, schedule) => ask(() => createSchedule(client, taskQueue, args, schedule)),
    changeSchedule: (goal, change) => ask(() => changeSchedule(client, goal, change)),
    async check() {
      const { namespace } = client.options;
      await ask(() => client.workflowService.describeNamespace({ namespace }));
    },
  };
}

async function signalGoal(client: Client, taskQueue: string, goal: string): Promise<void> {
  await client.workflow.signalWithStart('goalWorkflow', lookOfGoal(taskQueue, goal));
}

async function commandGoal(
  client: Client,
  taskQueue: string,
  ask: Ask,
  goal: string,
  command: GoalCommand,
): Promise<string | null> {
  const tell = () =>
    ifKnown(ask, () => client.workflow.getHandle(goalWorkflowId(goal)).executeUpdate(goalCommand, { args: [command] }));
  try {
    const answer = await tell();
    if (answer !== null) return answer;
    // The engine has lost it, or it has just ended: it begins where the store has it, and answers for itself.
    await ask(() => signalGoal(client, taskQueue, goal));
    return await tell();
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError) return null;
    throw error instanceof WorkflowUpdateRPCTimeoutOrCancelledError ? new EngineAway(error) : error;
  }
}

/** `TASK_QUEUE_TYPE_WORKFLOW` of temporal/api/enums/v1/task_queue.proto. */
const WORKFLOWS = 1;
/** `PENDING_ACTIVITY_STATE_SCHEDULED` of temporal/api/enums/v1/workflow.proto: no attempt runs. */
const SCHEDULED = 1;
/** Without a worker a query is never answered. */
const QUERY_LIMIT_MS = 2_000;

async function activityOf(client: Client, ask: Ask, turn: string): Promise<TurnActivity> {
  const handle = client.workflow.getHandle(turnWorkflowId(turn));
  const found = await ifKnown(ask, () => handle.describe());
  if (!found) return { engine: 'unknown', state: null, pending: [] };
  const engine = stateOfStatus(found.status.name);
  const query = () => client.withDeadline(Date.now() + QUERY_LIMIT_MS, () => handle.query(turnState));
  const state = engine === 'running' ? await query().catch(() => null) : null;
  return { engine, state, pending: (found.raw.pendingActivities ?? []).map(pendingOf) };
}

type Pending = NonNullable<WorkflowExecutionDescription['raw']['pendingActivities']>[number];

function pendingOf({ activityType, attempt, state, lastStartedTime, lastFailure }: Pending): PendingActivity {
  const runs = state !== SCHEDULED && lastStartedTime;
  return {
    type: activityType?.name ?? 'unknown',
    attempt: attempt ?? 1,
    startedAt: runs ? new Date(Number(runs.seconds ?? 0) * 1_000).toISOString() : null,
    failure: lastFailure ? (lastFailure.applicationFailureInfo?.type ?? 'lost') : null,
  };
}

function stateOfStatus(name: string): EngineState {
  switch (name) {
    case 'COMPLETED':
      return 'completed';
    case 'CANCELLED':
      return 'canceled';
    case 'FAILED':
      return 'failed';
    case 'TERMINATED':
      return 'terminated';
    case 'TIMED_OUT':
      return 'timed_out';
    case 'RUNNING':
    case 'PAUSED':
    case 'CONTINUED_AS_NEW':
      return 'running';
    default:
      return 'unknown';
  }
}

type Ask = <T>(work: () => Promise<T>) => Promise<T>;

async function ifKnown<T>(ask: Ask, work: () => Promise<T>): Promise<T | null> {
  try {
    return await ask(work);
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}

async function asked<T>(client: Client, limitMs: number, work: () => Promise<T>): Promise<T> {
  try {
    return await client.withDeadline(Date.now() + limitMs, work);
  } catch (error) {
    if (error instanceof WorkflowNotFoundError || !comesFromEngine(error)) throw error;
    throw new EngineAway(error);
  }
}

function comesFromEngine(error: unknown): boolean {
  return error instanceof Error && (isGrpcServiceError(error) || error.name === 'ServiceError');
}
