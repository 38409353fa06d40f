import { sql } from 'drizzle-orm';
import type { Db } from '../activities/store/database.ts';
import { findPlace } from '../activities/store/branches.ts';
import type { Message, MessageKind } from '../workflows/core/transcript.ts';
import { BadPosition } from './faults.ts';
import { PAGE } from './read-jobs.ts';
import { sessionOf } from './session-of.ts';

/** A message of a transcript. `at` is an ISO time. */
export interface ShownMessage {
  readonly hash: string;
  /** Its number on the chain; the first is 1. */
  readonly depth: number;
  readonly kind: MessageKind;
  readonly text: string;
  /** Tools that an assistant message calls; the tool that a result is of. */
  readonly tools: readonly string[];
  readonly at: string;
}

export interface MessageList {
  /** The newest message to show: the head if left out; another branch's, too. */
  readonly from?: string | undefined;
  /** 1 to 200; 50 if left out. */
  readonly limit?: number | undefined;
}

export interface MessagePage {
  readonly head: string;
  readonly messages: readonly ShownMessage[];
  /** Where to read on with `from`; null at the beginning of the conversation. */
  readonly next: string | null;
}

type Row = Record<string, unknown> & {
  readonly hash: string;
  readonly parent: string;
  readonly depth: number;
  readonly body: Message;
  readonly at: string;
};

/** The chain as people read it, newest first, also behind a compaction. Null: the tenant has no such session. */
export async function readMessages(
  db: Db,
  at: { readonly tenant: string; readonly of: string },
  { from, ...request }: MessageList,
): Promise<MessagePage | null> {
  const id = await sessionOf(db, at);
  if (id === null) return null;
  const limit = Math.min(Math.max(request.limit ?? PAGE.usual, 1), PAGE.max);
  const place = from === undefined ? null : await db.transaction((tx) => findPlace(tx, id, from));
  if (from !== undefined && !place) throw new BadPosition(`The session has no message ${from}, or more than one.`);
  const { rows: heads } = await db.execute<{ head: string }>(sql`select head from pawl.session where id = ${id}`);
  const head = heads[0]?.head ?? '';
  const { rows } = await db.execute<Row>(sql`
    with recursive back as (
      select hash, parent, depth, body, created_at, 1 as n from pawl.message where hash = ${place?.hash ?? head}
      union all
      select m.hash, m.parent, m.depth, m.body, m.created_at, back.n + 1
      from pawl.message m join back on m.hash = back.parent where back.n <= ${limit}
    )
    select hash, parent, depth, body, created_at as at from back order by n`);
  return { head, messages: rows.slice(0, limit).map(toMessage), next: rows[limit]?.hash ?? null };
}

function toMessage({ hash, depth, body, at }: Row): ShownMessage {
  return { hash, depth, kind: body.kind, text: body.text, tools: toolsOf(body), at: new Date(at).toISOString() };
}

function toolsOf(body: Message): readonly string[] {
  switch (body.kind) {
    case 'assistant':
      return body.calls.map(({ name }) => name);
    case 'tool_result':
      return [body.tool];
    default:
      return [];
  }
}
