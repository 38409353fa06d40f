import { and, eq, isNull, sql } from 'drizzle-orm';
import { type Answered, answerWait, lockSession, selectWaits, type Wait } from './answers.ts';
import type { Db, Tx } from './database.ts';
import { recordEvents } from './events.ts';
import { openGoalOf } from './goals.ts';
import { storable } from './hash.ts';
import { newId } from './ids.ts';
import { outsideEvent, turn } from './schema.ts';
import { storeWake } from './wakes.ts';

export interface NewOutsideEvent {
  readonly session: string;
  /** The same id again is the same event. */
  readonly id: string;
  readonly name: string;
  readonly text: string;
  readonly by: string;
}

export interface StoredEvent {
  /** False: this id had brought it before, and what it did then is told again. */
  readonly isNew: boolean;
  /** How many waits it ended; 0: it is kept for one that the open turn may still begin. */
  readonly waits: number;
  /** The session's goal, where no wait took the event: it may be what the goal waits for. */
  readonly goal: string | null;
  /** Whom to tell now. */
  readonly answered: readonly Answered[];
}

/**
 * Stores an event and answers every open wait of the session for its name, in one transaction; where there is none, it
 * is kept for the session's goal.
 */
export async function storeOutsideEvent(db: Db, event: NewOutsideEvent): Promise<StoredEvent> {
  for (;;) {
    const stored = await db.transaction((tx) => storeIn(tx, event));
    if (stored) return stored;
  }
}

/** Null: a turn opened while this looked; again. */
async function storeIn(tx: Tx, event: NewOutsideEvent): Promise<StoredEvent | null> {
  // The turn before its session, as its own activities lock them: no wait opens while this looks for them.
  const open = await lockOpenTurn(tx, event.session);
  await lockSession(tx, event.session);
  if (open !== (await lockOpenTurn(tx, event.session))) return null;
  const [known] = await tx
    .select({ waits: outsideEvent.waits })
    .from(outsideEvent)
    .where(and(eq(outsideEvent.session, event.session), eq(outsideEvent.id, event.id)));
  if (known) return { isNew: false, waits: known.waits, goal: null, answered: [] };
  const waits = await waitsFor(tx, event);
  await tx.insert(outsideEvent).values({
    session: event.session,
    id: storable(event.id),
    name: storable(event.name),
    body: storable(event.text),
    sender: storable(event.by),
    waits: waits.length,
  });
  const answered: Answered[] = [];
  for (const wait of waits) {
    const given = {
      answer: 'message',
      by: event.by,
      editedArguments: null,
      text: event.text,
      input: newId('in'),
    } as const;
    answered.push(await answerWait(tx, wait, given));
  }
  await recordEvents(tx, event.session, [
    {
      key: `reported/${event.session}/${event.id}`,
      turn: open,
      event: { kind: 'event.reported', layer: 'driver', event: event.id, waits: waits.length },
    },
  ]);
  return { isNew: true, waits: waits.length, goal: waits.length > 0 ? null : await wakesGoal(tx, event), answered };
}

async function wakesGoal(tx: Tx, { session, id, name, by }: NewOutsideEvent): Promise<string | null> {
  const open = await openGoalOf(tx, session);
  if (!open) return null;
  await storeWake(tx, { goal: open.id, key: `event/${id}`, source: 'event', event: name, by });
  return open.id;
}

async function lockOpenTurn(tx: Tx, session: string): Promise<string | null> {
  const [open] = await tx
    .select({ id: turn.id })
    .from(turn)
    .where(and(eq(turn.session, session), isNull(turn.endedAt)))
    .for('share');
  return open?.id ?? null;
}

async function waitsFor(tx: Tx, { session, name }: NewOutsideEvent): Promise<Wait[]> {
  const { rows } = await tx.execute<Wait>(sql`${selectWaits}
    where t.session = ${session} and a.answer is null and a.asked->>'kind' = 'event'
      and a.asked->>'subject' = ${storable(name)} and (t.ended_at is null or t.end_reason = 'BLOCKED')
    order by a.created_at for no key update of a`);
  return rows;
}

export interface TakenEvent {
  readonly body: string;
  readonly sender: string | null;
}

/** The oldest event of that name that came in this turn and that nothing has taken; the turn is locked. */
export async function takeEvent(
  tx: Tx,
  at: { readonly id: string; readonly session: string },
  name: string,
): Promise<TakenEvent | null> {
  const { rows } = await tx.execute<TakenEvent & Record<string, unknown>>(sql`
    update pawl.outside_event set waits = 1
    where session = ${at.session} and id = (
      select e.id from pawl.outside_event e
      where e.session = ${at.session} and e.name = ${storable(name)} and e.waits = 0
        and e.created_at >= (select opened_at from pawl.turn where id = ${at.id})
      order by e.created_at, e.id limit 1)
    returning body, sender`);
  return rows[0] ?? null;
}
