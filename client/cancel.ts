import { setTimeout as sleep } from 'node:timers/promises';
import { eq, sql } from 'drizzle-orm';
import type { Db } from '../activities/store/database.ts';
import { recordEvents } from '../activities/store/events.ts';
import { newId } from '../activities/store/ids.ts';
import { markWithdrawn, type Withdrawal, withdrawnEvent } from '../activities/store/input-changes.ts';
import { storeCancel } from '../activities/store/cancels.ts';
import { cancel, session } from '../activities/store/schema.ts';
import { EngineAway, onStore } from './faults.ts';
import { type OrderDeps, orderGoal } from './goal-orders.ts';
import { refuseBadId } from './own-id.ts';
import { type FoundJob, findJob } from './read-jobs.ts';

export interface CancelJob {
  readonly by: string;
  readonly why?: string | undefined;
  /** The caller's own id: the same id again is the same request, with the same answer. */
  readonly id?: string | undefined;
}

/** `took_request`: the turn was asked to end; its end event says what it ended with. */
export type CancelledJob = 'took_request' | 'already_ended' | 'withdrawn';

const LOOK_AGAIN_MS = 250;
const GIVE_UP_AFTER_MS = 10_000;

type CancelDeps = OrderDeps;

/** Null where the tenant has no such job. Throws BadId, EngineAway or StoreAway. */
export async function cancelJob(
  deps: CancelDeps,
  at: { readonly tenant: string; readonly job: string },
  request: CancelJob,
): Promise<CancelledJob | null> {
  refuseBadId(request.id);
  const id = request.id ?? newId('can');
  const giveUpAt = Date.now() + GIVE_UP_AFTER_MS;
  for (;;) {
    const found = await onStore(() => findJob(deps.db, at.tenant, at.job));
    if (!found) return null;
    if (found.job.goal) return await cancelGoalOf(deps, at.tenant, found.job.goal.id, { ...request, id });
    const answer = await tryCancel(deps, found, { ...request, id: `${found.job.session}/${id}` });
    if (answer !== 'look_again') return answer;
    if (Date.now() > giveUpAt) throw new EngineAway();
    await sleep(LOOK_AGAIN_MS);
  }
}

/** A job with a goal ends with it, and the goal takes the round that waits or runs with it. */
async function cancelGoalOf(
  deps: CancelDeps,
  tenant: string,
  goal: string,
  { id, by, why }: CancelJob,
): Promise<CancelledJob> {
  const answer = await orderGoal(deps, { tenant, goal }, { id: `job/${id}`, kind: 'cancel', by, why });
  return answer?.kind === 'done' ? 'took_request' : 'already_ended';
}

async function tryCancel(
  { db, engine }: Pick<CancelDeps, 'db' | 'engine'>,
  { job, next }: FoundJob,
  { id, by, why }: CancelJob & { readonly id: string },
): Promise<CancelledJob | 'look_again'> {
  if (next !== null) {
    if (job.state === 'done') return 'withdrawn';
    const asked = { input: next, session: job.session, by, why: why ?? null };
    return (await onStore(() => withdraw(db, asked))) ? 'withdrawn' : 'look_again';
  }
  if (job.turn === null) return 'look_again';
  const request = { turn: job.turn, id, by, why: why ?? null, decidedBy: 'user', detail: 'user_cancel' } as const;
  const stored = await onStore(() => storeCancel(db, request));
  if (stored !== 'stored') return await onStore(() => earlierAnswer(db, id));
  // The engine may not know the turn yet, or not any more: then the store will say which, in a moment.
  return (await engine.cancel(job.turn)) ? 'took_request' : 'look_again';
}

/** The same request may have been answered by the turn's end already. */
async function earlierAnswer(db: Db, id: string): Promise<CancelledJob> {
  const [row] = await db.select({ answer: cancel.answer }).from(cancel).where(eq(cancel.id, id));
  return row?.answer === 'took' || row?.answer === 'second' ? 'took_request' : 'already_ended';
}

/**
 * Takes back an input whose turn has not opened, whoever edits it, be it the job's own or what it goes on with. False:
 * it has meanwhile.
 */
async function withdraw(db: Db, asked: Withdrawal & { readonly session: string }): Promise<boolean> {
  return await db.transaction(async (tx) => {
    // The same order of locks as the session's own look at its queue.
    await tx.execute(sql`select 1 from ${session} where ${session.id} = ${asked.session} for no key update`);
    if (!(await markWithdrawn(tx, asked))) return false;
    await recordEvents(tx, asked.session, [withdrawnEvent(asked)]);
    return true;
  });
}
