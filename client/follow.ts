import { and, eq, isNull, sql } from 'drizzle-orm';
import type { Db } from '../activities/store/database.ts';
import { readEvents } from '../activities/store/events.ts';
import type { StreamListener } from '../activities/store/notify.ts';
import { session, turn, usage } from '../activities/store/schema.ts';
import { BadPosition, onStore, StoreAway } from './faults.ts';
import { hydrate, type TextEvent } from './hydrate.ts';
import { isAtRest, type JobEnd } from './job.ts';
import { LiveAttempts, type TextDelta } from './live-attempts.ts';
import { type FoundJob, findJob, lastWords } from './read-jobs.ts';
import { Waker } from './waker.ts';

export type RunEvent = TextEvent | TextDelta;

export interface FollowRequest {
  /** Number of the last event that the caller has; 0 for none. */
  readonly after?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** `rest`: until nothing happens by itself any more (the default); `done`: through waits for somebody. */
  readonly until?: 'rest' | 'done' | undefined;
}

interface FollowDeps {
  readonly db: Db;
  readonly listener: StreamListener;
}

const POLL_MS = 1_000;
const AT_ONCE = 200;

/**
 * Events of a job in their order and, between them, the text that is being written; the caller's pace is ours.
 * Returns how it ended, or null for an unknown job or when the signal was raised. An outage of the store is
 * waited out. Throws BadPosition for an `after` that the stream never reached.
 */
export async function* followJob(
  deps: FollowDeps,
  at: { readonly tenant: string; readonly job: string },
  request: FollowRequest,
): AsyncGenerator<RunEvent, JobEnd | null, void> {
  const found = await onStore(() => findJob(deps.db, at.tenant, at.job));
  if (!found) return null;
  const { signal } = request;
  let after = request.after ?? 0;
  const live = await onStore(() => openFollow(deps.db, found, after));
  const waker = new Waker(signal);
  const unfollow = await deps.listener.follow(found.stream, () => waker.wake());
  try {
    while (!signal?.aborted) {
      const seen = await unlessAway(() => look(deps.db, at, found, after, live));
      for (const item of seen?.items ?? []) {
        if (item.type === 'event') after = item.event.seq;
        yield item;
        if (signal?.aborted) return null;
      }
      if (seen?.end && (request.until !== 'done' || seen.end.state === 'done')) return seen.end;
      if (!seen?.more) await waker.wait(POLL_MS);
    }
    return null;
  } finally {
    unfollow();
    waker.close();
  }
}

interface Seen {
  readonly items: readonly RunEvent[];
  readonly more: boolean;
  readonly end: JobEnd | null;
}

/** The state is read first: an end that is seen has all its events behind `after` in the same look. */
async function look(
  db: Db,
  at: { readonly tenant: string; readonly job: string },
  before: FoundJob,
  after: number,
  live: LiveAttempts,
): Promise<Seen> {
  const { job, head } = (await findJob(db, at.tenant, at.job)) ?? before;
  const events = await readEvents(db, before.stream, after, AT_ONCE);
  const items = await hydrate(db, events);
  for (const recorded of events) live.take(recorded);
  if (events.length === AT_ONCE) return { items, more: true, end: null };
  if (!isAtRest(job.state)) return { items: [...items, ...(await live.read(db))], more: false, end: null };
  const text = await lastWords(db, head);
  const { id, state, turn: turnId, end, dropped, goal } = job;
  return { items, more: false, end: { job: id, state, turn: turnId, end, dropped, goal, text } };
}

async function unlessAway<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await onStore(work);
  } catch (error) {
    if (error instanceof StoreAway) return null;
    throw error;
  }
}

/** Checks the position, and finds the attempts that began before it and still write. */
async function openFollow(db: Db, { job, stream }: FoundJob, after: number): Promise<LiveAttempts> {
  const [root] = await db.select({ seq: session.eventSeq }).from(session).where(eq(session.id, stream));
  if (!Number.isSafeInteger(after) || after < 0 || after > (root?.seq ?? 0)) {
    throw new BadPosition(`This stream has no event ${after}: begin again without a position.`);
  }
  const rows = await db
    .select({ attempt: usage.attempt, step: usage.step })
    .from(usage)
    .innerJoin(turn, eq(turn.id, usage.turn))
    .where(and(eq(turn.session, job.session), isNull(turn.endedAt), sql`${usage.closedAt} is null`));
  return new LiveAttempts(rows);
}
