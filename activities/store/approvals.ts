import { and, asc, eq, gt, inArray, isNull, sql } from 'drizzle-orm';
import type { Db, Tx } from './database.ts';
import { type NewEvent, recordEvents } from './events.ts';
import { storable } from './hash.ts';
import { insertInput, type NewInput } from './intake.ts';
import { approval, type ApprovalAnswer, type Asked, call, effect, turn } from './schema.ts';

export type ApprovalRow = typeof approval.$inferSelect;

/** Names the approval of a call for ever: asked once, whatever is repeated. */
export function approvalIdOf(callKey: string): string {
  return `apr_${callKey.slice(0, 32)}`;
}

/** Opens the question that a person is to answer; one that is open already stays as it is. */
export async function openApproval(
  tx: Tx,
  at: { readonly turn: string; readonly call: string; readonly asked: Asked; readonly expiryMs: number },
): Promise<{ readonly row: ApprovalRow; readonly event: NewEvent }> {
  const id = approvalIdOf(at.call);
  await tx
    .insert(approval)
    .values({
      id,
      call: at.call,
      turn: at.turn,
      asked: at.asked,
      expiresAt: sql`clock_timestamp() + make_interval(secs => ${at.expiryMs / 1_000})`,
    })
    .onConflictDoNothing();
  const [row] = await tx.select().from(approval).where(eq(approval.id, id));
  if (!row) throw new Error('an approval vanished while it was opened');
  return {
    row,
    event: {
      key: `approval/${id}`,
      turn: at.turn,
      event: {
        kind: 'approval.opened',
        layer: 'batch',
        approval: id,
        key: at.call,
        tool: at.asked.tool,
        expiresAt: row.expiresAt.toISOString(),
      },
    },
  };
}

export interface NewAnswer {
  readonly approval: string;
  readonly answer: Exclude<ApprovalAnswer, 'expired'>;
  readonly by: string;
  readonly editedArguments: string | null;
  /** For `message`: what was typed. */
  readonly message: NewInput | null;
}

export type Answered =
  | { readonly kind: 'recorded'; readonly turn: string; readonly session: string }
  /** It has its answer already; that one stands, and is told again. */
  | { readonly kind: 'answered_before'; readonly answer: ApprovalAnswer; readonly by: string | null }
  /** The turn has ended over it; the answer starts the next one. */
  | { readonly kind: 'late'; readonly session: string }
  | { readonly kind: 'stale'; readonly why: 'expired' | 'turn_ended' }
  | { readonly kind: 'unknown' };

/** Records a person's answer, once: whoever comes second is told what the first one said. */
export async function answerApproval(db: Db, tenant: string, given: NewAnswer): Promise<Answered> {
  return await db.transaction(async (tx) => {
    // The turn before its approval, as the turn's own activities lock them.
    await tx.execute(sql`
      select from pawl.turn t join pawl.approval a on a.turn = t.id where a.id = ${given.approval} for share of t`);
    const { rows } = await tx.execute<Row>(sql`
      select a.answer, a.answered_by as by, a.asked->>'kind' as kind, a.expires_at <= clock_timestamp() as expired, a.call, t.id as turn,
             t.session, t.ended_at is not null as ended
      from pawl.approval a join pawl.turn t on t.id = a.turn join pawl.session s on s.id = t.session
      where a.id = ${given.approval} and s.tenant = ${tenant} for no key update of a`);
    const [row] = rows;
    if (!row) return { kind: 'unknown' };
    if (row.answer) return { kind: 'answered_before', answer: row.answer, by: row.by };
    const isWait = row.kind !== 'permission';
    if (row.ended && !(isWait && given.message)) return { kind: 'stale', why: 'turn_ended' };
    if (row.expired && !isWait) return { kind: 'stale', why: 'expired' };
    if (given.message) {
      const kind = isWait ? 'call_back' : 'steer';
      await insertInput(tx, { ...given.message, kind, ...(row.ended ? {} : { turn: row.turn }) });
    }
    await tx
      .update(approval)
      .set({
        answer: given.answer,
        answeredBy: given.by,
        answeredAt: sql`clock_timestamp()`,
        editedArguments: given.editedArguments === null ? null : storable(given.editedArguments),
        input: given.message?.id ?? null,
      })
      .where(eq(approval.id, given.approval));
    await recordEvents(tx, row.session, [answeredEvent(given.approval, row.call, row.turn, given.answer, given.by)]);
    if (row.ended) return { kind: 'late', session: row.session };
    return { kind: 'recorded', turn: row.turn, session: row.session };
  });
}

interface Row extends Record<string, unknown> {
  readonly kind: Asked['kind'];
  readonly answer: ApprovalAnswer | null;
  readonly by: string | null;
  readonly expired: boolean;
  readonly ended: boolean;
  readonly call: string;
  readonly turn: string;
  readonly session: string;
}

export function answeredEvent(
  id: string,
  key: string,
  turnId: string,
  answer: ApprovalAnswer,
  by: string | null,
): NewEvent {
  return {
    key: `approval/${id}/answer`,
    turn: turnId,
    event: { kind: 'approval.answered', layer: 'batch', approval: id, key, answer, by },
  };
}

/** Locks an approval; one whose time is over and that nobody answered becomes `expired` here. */
export async function closeIfExpired(
  tx: Tx,
  id: string,
): Promise<{ readonly row: ApprovalRow; readonly isNew: boolean }> {
  const expired = await tx
    .update(approval)
    .set({ answer: 'expired', answeredAt: sql`clock_timestamp()` })
    .where(and(eq(approval.id, id), isNull(approval.answer), sql`${approval.expiresAt} <= clock_timestamp()`))
    .returning();
  if (expired[0]) return { row: expired[0], isNew: true };
  const [row] = await tx.select().from(approval).where(eq(approval.id, id)).for('no key update');
  if (!row) throw new Error('an approval vanished');
  return { row, isNew: false };
}

/** Gives calls that will not run their result, and the ledger the word that they never began. */
export async function refuseCalls(
  tx: Tx,
  keys: readonly string[],
  told: { readonly status: 'denied' | 'fused'; readonly text: string; readonly note: string },
): Promise<void> {
  if (keys.length === 0) return;
  await tx
    .update(call)
    .set({ status: told.status, result: storable(told.text), note: told.note, finishedAt: sql`clock_timestamp()` })
    .where(and(inArray(call.key, [...keys]), isNull(call.status)));
  await tx
    .update(effect)
    .set({ state: 'settled_absent', settledAt: sql`clock_timestamp()` })
    .where(and(inArray(effect.key, [...keys]), eq(effect.state, 'intended')));
}

/** Calls of the same message behind this one that have no result yet. */
export async function laterCalls(tx: Tx, key: string): Promise<string[]> {
  const [own] = await tx.select().from(call).where(eq(call.key, key));
  if (!own) return [];
  const rows = await tx
    .select({ key: call.key })
    .from(call)
    .where(and(eq(call.assistant, own.assistant), gt(call.ordinal, own.ordinal), isNull(call.status)))
    .orderBy(asc(call.ordinal));
  return rows.map((row) => row.key);
}

/** What waits for a person in open turns of a tenant, oldest first. */
export async function openApprovals(db: Db, tenant: string): Promise<(ApprovalRow & { session: string })[]> {
  const rows = await db
    .select({ approval, session: turn.session })
    .from(approval)
    .innerJoin(turn, eq(turn.id, approval.turn))
    .where(
      and(
        isNull(approval.answer),
        isNull(turn.endedAt),
        sql`exists (select from pawl.session s where s.id = ${turn.session} and s.tenant = ${tenant})`,
      ),
    )
    .orderBy(asc(approval.createdAt));
  return rows.map((row) => ({ ...row.approval, session: row.session }));
}

/** Answers that their turn has not heard of: whoever gave them died before it could tell. */
export async function untoldAnswers(db: Db, olderThanMs: number): Promise<{ turn: string; approval: string }[]> {
  const { rows } = await db.execute<{ turn: string; approval: string }>(sql`
    select a.turn, a.id as approval from pawl.approval a join pawl.turn t on t.id = a.turn
    where a.answer is not null and a.settled_at is null and t.ended_at is null
      and a.answered_at < clock_timestamp() - make_interval(secs => ${olderThanMs / 1_000}) limit 500`);
  return rows;
}

/** The turn has drawn its conclusion from the answer. */
export async function markSettled(tx: Tx, id: string): Promise<void> {
  await tx.update(approval).set({ settledAt: sql`clock_timestamp()` }).where(eq(approval.id, id));
}

/** Whether its turn has drawn the conclusion, or can't any more. */
export async function isSettled(db: Db, id: string): Promise<boolean> {
  const [row] = await db
    .select({ settledAt: approval.settledAt, endedAt: turn.endedAt })
    .from(approval)
    .innerJoin(turn, eq(turn.id, approval.turn))
    .where(eq(approval.id, id));
  return row === undefined || row.settledAt !== null || row.endedAt !== null;
}
