import { and, asc, eq, inArray, or, sql } from 'drizzle-orm';
import type { PgUpdateSetSource } from 'drizzle-orm/pg-core';
import type { End } from '../../workflows/core/ends.ts';
import { SAID_TO_TURN } from '../../workflows/core/inputs.ts';
import type { Tx } from './database.ts';
import type { NewEvent } from './events.ts';
import type { FencedTurn } from './fence.ts';
import { input } from './schema.ts';

/**
 * The promoted input is consumed by its turn's end. A forwarded one is consumed if it is a message on the
 * chain of the end's head; otherwise it waits for the next turn, or is dropped when a person cancelled.
 */
export async function settleInputs(
  tx: Tx,
  owner: FencedTurn,
  head: string,
  end: End,
  { by, why }: { readonly by: string | null; readonly why: string | null },
): Promise<NewEvent[]> {
  const isDropping = end.detail === 'user_cancel';
  const rows = await tx
    .select()
    .from(input)
    .where(or(and(eq(input.turn, owner.id), eq(input.status, 'forwarded')), isDropping ? saidTo(owner) : undefined))
    .orderBy(asc(input.seq));
  const isOwn = (row: { readonly id: string }) => row.id === owner.input;
  const onChain = rows.every(isOwn) ? new Set<string>() : await messagesOfTurn(tx, owner, head);
  const consumed = rows.filter((row) => isOwn(row) || (row.message !== null && onChain.has(row.message)));
  const left = rows.filter((row) => !consumed.includes(row));
  const drops = isDropping ? left.filter((row) => SAID_TO_TURN.includes(row.kind)) : [];
  const back = left.filter((row) => !drops.includes(row));
  await setStatus(tx, consumed, { status: 'consumed' });
  const dropped = { droppedBy: by, droppedWhy: why, droppedAt: sql`clock_timestamp()` };
  await setStatus(tx, drops, { status: 'dropped_by_cancel', ...dropped });
  await setStatus(tx, back, { status: 'queued', turn: null, message: null, isLeftOver: true });
  return drops.map((row) => ({
    key: `dropped/${row.id}`,
    turn: owner.id,
    event: { kind: 'input.dropped', layer: 'driver', input: row.id, status: 'dropped_by_cancel', by, why },
  }));
}

/** Said to the turn, and not handed to it yet; the session's row is locked, so no look takes it meanwhile. */
function saidTo(owner: FencedTurn) {
  return and(eq(input.session, owner.session), eq(input.status, 'queued'), inArray(input.kind, [...SAID_TO_TURN]));
}

async function setStatus(
  tx: Tx,
  rows: readonly { readonly id: string }[],
  set: PgUpdateSetSource<typeof input>,
): Promise<void> {
  if (rows.length === 0) return;
  await tx
    .update(input)
    .set(set)
    .where(
      inArray(
        input.id,
        rows.map((row) => row.id),
      ),
    );
}

async function messagesOfTurn(tx: Tx, owner: FencedTurn, head: string): Promise<Set<string>> {
  const { rows } = await tx.execute<{ hash: string }>(sql`
    with recursive back as (
      select hash, parent from pawl.message where hash = ${head} and hash <> ${owner.baseHead}
      union all
      select m.hash, m.parent from pawl.message m join back on m.hash = back.parent where m.hash <> ${owner.baseHead}
    )
    select hash from back`);
  return new Set(rows.map((row) => row.hash));
}
