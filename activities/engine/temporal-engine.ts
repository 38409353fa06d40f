import { type Client, ScheduleNotFoundError, WorkflowNotFoundError } from '@temporalio/client';
import type { temporal } from '@temporalio/proto';
import { answerWaits, goalScheduleId, lookOfGoal, lookOfSession } from '../../workflows/messages.ts';
import type { Engine, WorkflowFate } from './port.ts';

type HistoryEvent = temporal.api.history.v1.IHistoryEvent;

/** The engine port over a Temporal client; `taskQueue` is where session workflows run. */
export function temporalEngine(client: Client, taskQueue: string): Engine {
  return {
    async isCurrentRun(workflowId, run) {
      const { runId } = await client.workflow.getHandle(workflowId).describe();
      return runId === run;
    },
    async cancelAuthor(workflowId, run) {
      const history = await client.workflow.getHandle(workflowId, run).fetchHistory();
      const asked = history.events?.find((event) => event.workflowExecutionCancelRequestedEventAttributes);
      return asked?.workflowExecutionCancelRequestedEventAttributes?.identity ?? null;
    },
    async requestCancel(workflowId) {
      try {
        await client.workflow.getHandle(workflowId).cancel();
        return true;
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) return false;
        throw error;
      }
    },
    async answerWaits(workflowId, approval) {
      try {
        await client.workflow.getHandle(workflowId).signal(answerWaits, approval);
      } catch (error) {
        if (!(error instanceof WorkflowNotFoundError)) throw error;
      }
    },
    fateOf: (workflowId) => fateOf(client, workflowId),
    look: (session) => signalSession(client, taskQueue, session),
    lookGoal: (goal) => signalGoal(client, taskQueue, goal),
    async endSchedule(goal) {
      try {
        await client.schedule.getHandle(goalScheduleId(goal)).delete();
      } catch (error) {
        if (!(error instanceof ScheduleNotFoundError)) throw error;
      }
    },
  };
}

/** Signals a session's workflow, starting it first where it is not running. */
export async function signalSession(client: Client, taskQueue: string, session: string): Promise<void> {
  await client.workflow.signalWithStart('sessionWorkflow', lookOfSession(taskQueue, session));
}

/** Signals a goal's workflow, starting it first where it is not running: it finds in the store how it stands. */
export async function signalGoal(client: Client, taskQueue: string, goal: string): Promise<void> {
  await client.workflow.signalWithStart('goalWorkflow', lookOfGoal(taskQueue, goal));
}

async function fateOf(client: Client, workflowId: string): Promise<WorkflowFate> {
  try {
    const { status, runId } = await client.workflow.getHandle(workflowId).describe();
    switch (status.name) {
      case 'COMPLETED':
        return { kind: 'completed' };
      case 'CANCELLED':
        return { kind: 'canceled' };
      case 'TIMED_OUT':
        return { kind: 'timed_out' };
      case 'TERMINATED':
        return terminated(await lastEvent(client, workflowId, runId));
      case 'FAILED':
        return failed(await lastEvent(client, workflowId, runId));
      default:
        return { kind: 'running' };
    }
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return { kind: 'unknown' };
    throw error;
  }
}

async function lastEvent(client: Client, workflowId: string, runId: string): Promise<HistoryEvent | undefined> {
  const { events } = await client.workflow.getHandle(workflowId, runId).fetchHistory();
  return events?.at(-1);
}

function terminated(event: HistoryEvent | undefined): WorkflowFate {
  const facts = event?.workflowExecutionTerminatedEventAttributes;
  return { kind: 'terminated', by: facts?.identity || null, why: facts?.reason || null };
}

function failed(event: HistoryEvent | undefined): WorkflowFate {
  const info = event?.workflowExecutionFailedEventAttributes?.failure?.applicationFailureInfo;
  return { kind: 'failed', type: info?.type || null };
}
