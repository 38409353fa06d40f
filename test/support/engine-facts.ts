import { WorkflowNotFoundError, type WorkflowExecutionStatusName } from '@temporalio/client';
import type { temporal } from '@temporalio/proto';
import { asc, eq } from 'drizzle-orm';
import { storeCancel } from '../../activities/store/cancels.ts';
import { cancel } from '../../activities/store/schema.ts';
import { newId } from '../../activities/store/ids.ts';
import { forward, sessionWorkflowId, turnState, turnWorkflowId } from '../../workflows/messages.ts';
import type { JournalEvent, RecordedEvent } from '../../workflows/core/journal.ts';
import type { TestHouse } from './test-house.ts';
import { until } from './until.ts';

export type History = temporal.api.history.v1.IHistory;

export function turnHandle(at: TestHouse, turn: string) {
  return at.house.temporal.workflow.getHandle(turnWorkflowId(turn));
}

export function sessionHandle(at: TestHouse, session: string) {
  return at.house.temporal.workflow.getHandle(sessionWorkflowId(session));
}

/** The engine's status of a workflow once it is closed. (A long poll for the result was seen to sleep its whole 20 s.) */
export async function closedStatus(at: TestHouse, workflowId: string): Promise<WorkflowExecutionStatusName> {
  return await until(`the engine closes ${workflowId}`, async () => {
    try {
      const { status } = await at.house.temporal.workflow.getHandle(workflowId).describe();
      return status.name === 'RUNNING' ? null : status.name;
    } catch (error) {
      // It may be about to start.
      if (error instanceof WorkflowNotFoundError) return null;
      throw error;
    }
  });
}

/** What a person does: the row with the reason first, then the engine. */
export async function cancelTurn(
  at: TestHouse,
  turn: string,
  by: string,
  why: string | null = null,
): Promise<{ readonly id: string; readonly stored: string }> {
  const id = newId('can');
  const stored = await storeCancel(at.house.database.db, {
    turn,
    id,
    by,
    why,
    decidedBy: 'user',
    detail: 'user_cancel',
  });
  if (stored === 'stored') await cancelByEngine(at, turn);
  return { id, stored };
}

/** What `temporal workflow cancel` does: no row. A turn that is over by now is nothing to cancel. */
export async function cancelByEngine(at: TestHouse, turn: string): Promise<void> {
  try {
    await turnHandle(at, turn).cancel();
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
}

export async function cancelsOf(at: TestHouse, turn: string): Promise<(typeof cancel.$inferSelect)[]> {
  return await at.house.database.db.select().from(cancel).where(eq(cancel.turn, turn)).orderBy(asc(cancel.seq));
}

/** Histories of all runs that a workflow continued as, oldest first. */
export async function runsOf(at: TestHouse, workflowId: string, newest?: string): Promise<History[]> {
  const { workflow } = at.house.temporal;
  const chain: History[] = [];
  let run: string | undefined = newest ?? (await workflow.getHandle(workflowId).describe()).runId;
  while (run) {
    const history: History = await workflow.getHandle(workflowId, run).fetchHistory();
    chain.unshift(history);
    run = history.events?.[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId || undefined;
  }
  return chain;
}

/** A duration of the engine, in ms. */
export function inMs(
  duration: { seconds?: { toNumber(): number } | null; nanos?: number | null } | null | undefined,
): number {
  return (duration?.seconds?.toNumber() ?? 0) * 1_000 + (duration?.nanos ?? 0) / 1e6;
}

/** Events of one kind, of one turn where it is named. */
export function only<K extends JournalEvent['kind']>(
  events: readonly RecordedEvent[],
  kind: K,
  turn?: string,
): (JournalEvent & { kind: K })[] {
  return events.flatMap(({ event, turn: of }) =>
    event.kind === kind && (turn === undefined || of === turn) ? [event as JournalEvent & { kind: K }] : [],
  );
}

/** Brings a turn's history to `events` by signals that carry nothing, so that continuing as new is near. */
export async function lengthen(at: TestHouse, turn: string, events: number): Promise<void> {
  const handle = turnHandle(at, turn);
  for (;;) {
    const { historyLength } = await handle.describe();
    const missing = events - historyLength;
    if (missing <= 0) return;
    await Promise.all(Array.from({ length: Math.min(missing, 100) }, () => handle.signal(forward, [])));
  }
}

export interface ExportedHistory {
  readonly workflowId: string;
  readonly type: string;
  readonly status: WorkflowExecutionStatusName;
  readonly history: History;
}

/** Every run of every workflow of this house; `atLeast` runs, since visibility comes a moment later. */
export async function exportHistories(at: TestHouse, atLeast: number): Promise<ExportedHistory[]> {
  const { workflow } = at.house.temporal;
  return await until(`${atLeast} runs are listed`, async () => {
    const found: ExportedHistory[] = [];
    for await (const { workflowId, runId, type, status } of workflow.list({
      query: `TaskQueue = '${at.house.taskQueue}'`,
    })) {
      found.push({
        workflowId,
        type,
        status: status.name,
        history: await workflow.getHandle(workflowId, runId).fetchHistory(),
      });
    }
    return found.length >= atLeast ? found : null;
  });
}

/** The turn has reached its rest: the engine holds its timer, and no activity runs. */
export async function untilResting(at: TestHouse, turn: string): Promise<void> {
  await until(`${turn} rests`, async () => {
    const state = await turnHandle(at, turn)
      .query(turnState)
      .catch(() => null);
    return state?.phase.kind === 'resting';
  });
}

/** One look of recovery, now. */
export async function sweepNow(at: TestHouse): Promise<void> {
  const { workflow } = at.house.temporal;
  const { taskQueue } = at.house;
  const handle = await workflow.start('recoveryWorkflow', { taskQueue, workflowId: newId('evt'), args: [] });
  await until('recovery has looked', async () => {
    const { events } = await handle.fetchHistory();
    return events?.some((each) => each.timerStartedEventAttributes) ?? false;
  });
  await handle.terminate('it has looked');
}

/** From here on recovery looks only when a test says so. */
export async function stopRecovery(at: TestHouse): Promise<void> {
  const { schedule, workflow } = at.house.temporal;
  const handle = schedule.getHandle(`${at.house.taskQueue}-recovery`);
  const begun = await until('the first one has begun', async () => {
    const { recentActions } = (await handle.describe()).info;
    return recentActions.length > 0 ? recentActions : null;
  });
  await handle.pause('a test looks itself');
  for (const { action } of begun) await workflow.getHandle(action.workflow.workflowId).terminate('a test looks itself');
}
