import { and, eq } from 'drizzle-orm';
import type { Db } from '../../activities/store/database.ts';
import { event, input, turn } from '../../activities/store/schema.ts';
import type { JobTurnEnd } from '../job.ts';
import type { GoesOn } from './report.ts';

/** How the job of an ended turn goes on by itself. Null where it does not. */
export async function goesOnAfter(db: Db, turnId: string): Promise<GoesOn | null> {
  const times = await timesAfter(db, turnId);
  const [found] = await db
    .select({ id: input.id, status: input.status, opened: turn.id })
    .from(input)
    .leftJoin(turn, eq(turn.input, input.id))
    .where(eq(input.continues, turnId));
  if (!times || !found) return null;
  const { id, status, opened } = found;
  const state = opened !== null ? 'opened' : status === 'queued' ? 'queued' : 'taken_back';
  return { input: id, ...times, state, turn: opened };
}

interface Times {
  /** The n-th time, of so many. */
  readonly n: number;
  readonly of: number;
}

/** Which time its job went on by itself with this turn. Null where it did not open so. */
export async function timesBefore(db: Db, opener: string): Promise<Times | null> {
  const [own] = await db.select({ continues: input.continues }).from(input).where(eq(input.id, opener));
  return own?.continues ? await timesAfter(db, own.continues) : null;
}

async function timesAfter(db: Db, turnId: string): Promise<Times | null> {
  const [row] = await db
    .select({ body: event.body })
    .from(event)
    .where(and(eq(event.turn, turnId), eq(event.kind, 'job.continues')));
  return row?.body.kind === 'job.continues' ? { n: row.body.n, of: row.body.of } : null;
}

/** What to do after an end behind which the job goes on. */
export function goingOnAdvice({ state, n, of, turn: opened }: GoesOn): string {
  switch (state) {
    case 'queued':
      return `Nothing: it goes on by itself, time ${n} of ${of}. \`pawl cancel\` takes that back.`;
    case 'opened':
      return `Nothing: it went on by itself in turn ${opened}; ask about that one.`;
    case 'taken_back':
      return 'Nothing: going on was taken back; hand it in again if it is still wanted.';
  }
}

/** Set where a turn was interrupted that was the last one of its job to come by itself. */
export function spentAdvice({ reason }: JobTurnEnd, before: Times | null): string | null {
  if (reason !== 'INTERRUPTED' || !before || before.n < before.of) return null;
  return `It has gone on by itself ${before.n} times before, and does not again: find out what keeps ending it.`;
}
