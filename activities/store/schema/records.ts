import { sql } from 'drizzle-orm';
import { bigserial, index, integer, jsonb, primaryKey, text, uniqueIndex } from 'drizzle-orm/pg-core';
import type { JournalEvent, Layer } from '../../../workflows/core/journal.ts';
import type { Message, MessageKind } from '../../../workflows/core/transcript.ts';
import { bytes, created, int8, pawl, when } from './columns.ts';

/** Facts for receivers outside the transaction, delivered until acknowledged. */
export const outbox = pawl.table(
  'outbox',
  {
    id: bigserial('id', { mode: 'number' }).primaryKey(),
    receiver: text('receiver').notNull(),
    event: text('event').notNull(),
    body: jsonb('body').notNull(),
    createdAt: created(),
    acknowledgedAt: when('acknowledged_at'),
  },
  (t) => [
    uniqueIndex('outbox_once').on(t.receiver, t.event),
    index('outbox_open').on(t.receiver, t.createdAt).where(sql`${t.acknowledgedAt} is null`),
  ],
);

/** Append-only; the hash covers the parent, so a head names the whole past. */
export const message = pawl.table('message', {
  hash: text('hash').primaryKey(),
  parent: text('parent').notNull(),
  kind: text('kind').$type<MessageKind>().notNull(),
  body: jsonb('body').$type<Message>().notNull(),
  depth: integer('depth').notNull(),
  tokens: integer('tokens').notNull(),
  createdAt: created(),
});

export const blob = pawl.table('blob', {
  hash: text('hash').primaryKey(),
  tenant: text('tenant').notNull(),
  size: int8('size').notNull(),
  data: bytes('data').notNull(),
  createdAt: created(),
});

export const event = pawl.table(
  'event',
  {
    stream: text('stream').notNull(),
    seq: int8('seq').notNull(),
    key: text('key').notNull(),
    session: text('session').notNull(),
    turn: text('turn'),
    layer: text('layer').$type<Layer>().notNull(),
    kind: text('kind').$type<JournalEvent['kind']>().notNull(),
    body: jsonb('body').$type<JournalEvent>().notNull(),
    at: when('at').notNull().default(sql`clock_timestamp()`),
  },
  (t) => [
    primaryKey({ columns: [t.stream, t.seq] }),
    uniqueIndex('event_once').on(t.stream, t.key),
    index('event_of_turn').on(t.turn, t.seq),
  ],
);

/** Text chunks until their message is stored. */
export const delta = pawl.table(
  'delta',
  {
    id: bigserial('id', { mode: 'number' }).primaryKey(),
    stream: text('stream').notNull(),
    turn: text('turn').notNull(),
    step: integer('step').notNull(),
    attempt: text('attempt').notNull(),
    n: integer('n').notNull(),
    channel: text('channel').$type<'text' | 'reasoning'>().notNull(),
    chunk: text('chunk').notNull(),
  },
  (t) => [index('delta_of_stream').on(t.stream, t.id), uniqueIndex('delta_once').on(t.attempt, t.n)],
);
