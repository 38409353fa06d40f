import { and, asc, eq, gt, sql } from 'drizzle-orm';
import type { JournalEvent, RecordedEvent } from '../../workflows/core/journal.ts';
import type { Db, Tx } from './database.ts';
import { storableDeep } from './hash.ts';
import { event } from './schema.ts';

/** An event to be written once: a retry with the same key writes nothing. */
export interface NewEvent {
  readonly key: string;
  readonly turn: string | null;
  readonly event: JournalEvent;
}

/**
 * Writes events of one session into the stream of its root session.
 * Must be the last statement of its transaction: the row lock on the counter is then held so shortly
 * that numbers become visible in order, and a reader never misses a late commit.
 */
export async function recordEvents(tx: Tx | Db, session: string, events: readonly NewEvent[]): Promise<void> {
  if (events.length === 0) return;
  const rows = JSON.stringify(storableDeep(events.map(({ key, turn, event: body }) => ({ key, turn, body }))));
  await tx.execute(sql`
    with counter as (
      update pawl.session root set event_seq = root.event_seq + ${events.length}
      from pawl.session own where own.id = ${session} and root.id = own.stream
      returning root.id as stream, root.event_seq - ${events.length} as base
    )
    insert into pawl.event (stream, seq, key, session, turn, layer, kind, body)
    select counter.stream, counter.base + item.ordinality, item.value->>'key', ${session}, item.value->>'turn',
           item.value->'body'->>'layer', item.value->'body'->>'kind', item.value->'body'
    from counter, jsonb_array_elements(${rows}::jsonb) with ordinality item
    on conflict (stream, key) do nothing`);
}

/** Events of a stream after `seq`, oldest first. */
export async function readEvents(db: Db, stream: string, after: number, limit = 500): Promise<RecordedEvent[]> {
  const rows = await db
    .select()
    .from(event)
    .where(and(eq(event.stream, stream), gt(event.seq, after)))
    .orderBy(asc(event.seq))
    .limit(limit);
  return rows.map((row) => ({
    stream: row.stream,
    seq: row.seq,
    turn: row.turn,
    at: row.at.toISOString(),
    event: row.body,
  }));
}
