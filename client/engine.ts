import {
  type Client,
  isGrpcServiceError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import {
  answerWaits,
  approvalAnswered,
  look,
  type SessionArgs,
  sessionWorkflowId,
  turnWorkflowId,
} from '../workflows/messages.ts';
import { EngineAway } from './faults.ts';

export const ANSWER_LIMIT_MS = 5_000;

/** What the engine says of a turn's workflow. `unknown`: it knows no such workflow. */
export type EngineState = 'running' | 'completed' | 'canceled' | 'failed' | 'terminated' | 'timed_out' | 'unknown';

/** The few things a client asks of the engine. Each throws EngineAway when it does not answer in time. */
export interface ClientEngine {
  look(session: string): Promise<void>;
  /** False: the engine has no such turn running. */
  cancel(turn: string): Promise<boolean>;
  stateOf(turn: string): Promise<EngineState>;
  /** Tells a turn that an approval has its answer. False: it does not wait for it, not yet or not any more. */
  approvalAnswered(turn: string, approval: string): Promise<boolean>;
  check(): Promise<void>;
}

export function clientEngine(client: Client, taskQueue: string, limitMs: number): ClientEngine {
  const ask: Ask = (work) => asked(client, limitMs, work);
  return {
    async look(session) {
      const args: SessionArgs = { session };
      const workflowId = sessionWorkflowId(session);
      await ask(() =>
        client.workflow.signalWithStart('sessionWorkflow', { workflowId, taskQueue, args: [args], signal: look }),
      );
    },
    async cancel(turn) {
      const found = await ifKnown(ask, () => client.workflow.getHandle(turnWorkflowId(turn)).cancel());
      return found !== null;
    },
    async stateOf(turn) {
      const found = await ifKnown(ask, () => client.workflow.getHandle(turnWorkflowId(turn)).describe());
      return found === null ? 'unknown' : stateOfStatus(found.status.name);
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
    async check() {
      const { namespace } = client.options;
      await ask(() => client.workflowService.describeNamespace({ namespace }));
    },
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
