import { and, eq, sql } from 'drizzle-orm';
import type { Message } from '../../workflows/core/transcript.ts';
import type { Db, Tx } from './database.ts';
import { recordEvents } from './events.ts';
import { session } from './schema.ts';
import { type Link, writeLinks } from './transcript.ts';

/** Calls at the end of a session's chain have no result: each gets one before a turn opens on it. */
export interface ToRepair {
  readonly kind: 'repair';
  readonly head: string;
}

/**
 * Whether the newest reply of this chain has calls without a result: a fork or a rewind can lead there. Calls of a
 * reply that was cut never ran; they are owed nothing.
 */
export async function endsOpen(tx: Tx, head: string): Promise<boolean> {
  const { rows } = await tx.execute<{ open: boolean }>(sql`
    with recursive back as (
      select parent, kind, body, 1 as n from pawl.message where hash = ${head}
      union all
      select m.parent, m.kind, m.body, back.n + 1 from pawl.message m join back on m.hash = back.parent
      where back.kind not in ('assistant', 'compaction') and back.n < ${LOOK_BACK}
    )
    select coalesce(bool_or(kind = 'assistant' and not (body->>'cut')::boolean
        and jsonb_array_length(body->'calls') > (
          select count(distinct body->>'ordinal') from back where kind = 'tool_result')), false) as open
    from back`);
  return rows[0]?.open === true;
}

const LOOK_BACK = 1_000;

/** The calls that have no result, by ordinal, and the reply that asked for them. Null: there are none. */
export function unansweredOf(
  chain: readonly Link[],
): { readonly link: Link; readonly ordinals: readonly number[] } | null {
  const at = chain.findLastIndex(({ body }) => body.kind === 'assistant');
  const link = chain[at];
  if (!link || link.body.kind !== 'assistant' || link.body.cut) return null;
  const answered = new Set(chain.slice(at + 1).flatMap(({ body }) => (isResult(body) ? [body.ordinal] : [])));
  const ordinals = link.body.calls.map((_, ordinal) => ordinal).filter((ordinal) => !answered.has(ordinal));
  return ordinals.length > 0 ? { link, ordinals } : null;
}

function isResult(body: Message): body is Message & { readonly kind: 'tool_result' } {
  return body.kind === 'tool_result';
}

/** Puts results behind the head, unless it has moved meanwhile. */
export async function appendRepair(
  db: Db,
  at: { readonly session: string; readonly head: string },
  links: readonly Link[],
): Promise<void> {
  const head = links[links.length - 1]?.hash;
  if (head === undefined) return;
  await db.transaction(async (tx) => {
    const moved = await tx
      .update(session)
      .set({ head })
      .where(and(eq(session.id, at.session), eq(session.head, at.head)))
      .returning({ id: session.id });
    if (moved.length === 0) return;
    await writeLinks(tx, links);
    const event = { kind: 'chain.repaired', layer: 'driver', from: at.head, head, results: links.length } as const;
    await recordEvents(tx, at.session, [{ key: `repaired/${head}`, turn: null, event }]);
  });
}
