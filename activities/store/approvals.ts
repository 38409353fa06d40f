import { and, asc, eq, gt, inArray, isNull, or, type SQL, sql } from 'drizzle-orm';
import type { PgUpdateSetSource } from 'drizzle-orm/pg-core';
import type { EndDetail } from '../../workflows/core/ends.ts';
import type { JournalEvent } from '../../workflows/core/journal.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Db, Tx } from './database.ts';
import type { NewEvent } from './events.ts';
import { storable } from './hash.ts';
import { approval, type ApprovalAnswer, type Asked, call, effect, turn } from './schema.ts';

export type ApprovalRow = typeof approval.$inferSelect;

/** Names the approval of a call for ever: asked once, whatever is repeated. */
export function approvalIdOf(callKey: string): string {
  return `apr_${callKey.slice(0, 32)}`;
}

export interface NewQuestion {
  readonly id: string;
  readonly turn: string;
  readonly call: string;
  readonly asked: Asked;
  readonly expiryMs: number;
}

/** Opens a question; one that is open already stays as it is. */
export async function insertQuestion(tx: Tx, { expiryMs, ...question }: NewQuestion): Promise<ApprovalRow> {
  await tx
    .insert(approval)
    .values({ ...question, expiresAt: sql`clock_timestamp() + make_interval(secs => ${expiryMs / 1_000})` })
    .onConflictDoNothing();
  const [row] = await tx.select().from(approval).where(eq(approval.id, question.id));
  if (!row) throw new Error('an approval vanished while it was opened');
  return row;
}

/** Opens the question whether a call may run, or what it is to be told. */
export async function openApproval(
  tx: Tx,
  at: Omit<NewQuestion, 'id'>,
): Promise<{ readonly row: ApprovalRow; readonly event: NewEvent }> {
  const id = approvalIdOf(at.call);
  const row = await insertQuestion(tx, { id, ...at });
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

export function deniedEvent(
  turnId: string,
  key: string,
  tool: string,
  by: (JournalEvent & { kind: 'call.denied' })['by'],
): NewEvent {
  return { key: `denied/${key}`, turn: turnId, event: { kind: 'call.denied', layer: 'batch', key, tool, by } };
}

export interface LockedApproval {
  readonly row: ApprovalRow;
  /** Its time is over, by the database's clock. */
  readonly isOver: boolean;
  /** It became `expired` here. */
  readonly isNew: boolean;
}

/** Locks an approval. One that nobody answered in time becomes `expired`, unless the turn is to end BLOCKED over it. */
export async function closeIfExpired(tx: Tx, id: string): Promise<LockedApproval> {
  const isOver = sql<boolean>`${approval.expiresAt} <= clock_timestamp()`;
  const [found] = await tx
    .select({ row: approval, isOver })
    .from(approval)
    .where(eq(approval.id, id))
    .for('no key update');
  if (!found) throw new Error('an approval vanished');
  const { row } = found;
  if (row.answer !== null || !found.isOver || row.asked.onExpiry === 'block') return { ...found, isNew: false };
  const [expired] = await tx
    .update(approval)
    .set({ answer: 'expired', answeredAt: sql`clock_timestamp()` })
    .where(eq(approval.id, id))
    .returning();
  return { row: expired ?? row, isOver: true, isNew: true };
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
    .where(and(inArray(call.key, [...keys]), or(isNull(call.status), eq(call.status, 'blocked_on_approval'))));
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

/** The call waits on, beyond its turn: the ledger keeps it as intended, and a late yes may still have it made. */
export async function keepWaiting(tx: Tx, key: string, text: string): Promise<void> {
  await tx
    .update(call)
    .set({ status: 'blocked_on_approval', result: storable(text), note: 'awaiting_approval' })
    .where(and(eq(call.key, key), isNull(call.status)));
}

/** Who answered what, and when; `more`: what else the row learns with it. */
export async function writeAnswer(
  tx: Tx,
  id: string,
  { answer, by }: { readonly answer: NonNullable<ApprovalRow['answer']>; readonly by: string | null },
  more: PgUpdateSetSource<typeof approval>,
): Promise<void> {
  await tx
    .update(approval)
    .set({ answer, answeredBy: by === null ? null : storable(by), answeredAt: sql`clock_timestamp()`, ...more })
    .where(eq(approval.id, id));
}

/** An open wait, with its session and how long it stays open; null: until it is answered. */
export type OpenWait = ApprovalRow & { readonly session: string; readonly openUntil: Date | null };

/** Ends after which nothing goes on until a person has said what became of a call. */
const STOPS: readonly EndDetail[] = ['unknown_outcome', 'terminated'];
/** Ends after which a job goes on by itself, as often as it may: the model is told that nobody knows. */
const GOES_ON: readonly EndDetail[] = ['lost', 'timed_out', 'workspace_lost'];

/** Turns that ended so that a person may still say what became of a call: the work has not gone on without it. */
export function asksAfterEnd(): SQL {
  return sql`(${inArray(turn.endDetail, [...STOPS])} or (${inArray(turn.endDetail, [...GOES_ON])}
    and not exists (select from pawl.turn later where later.session = ${turn.session} and later.n > ${turn.n})
    and not exists (select from pawl.input i where i.continues = ${turn.id} and i.status in ('queued', 'forwarded'))
    and not exists (select from pawl.goal g where g.session = ${turn.session} and not g.is_final)))`;
}

/** The outcome of a call that an answer still changes something about. */
function isOpenOutcome() {
  return sql`exists (select from pawl.effect e where e.key = ${approval.call} and e.state = 'unknown')
    and ((${turn.endedAt} is null and ${approval.expiresAt} > clock_timestamp())
      or ${asksAfterEnd()})`;
}

/**
 * What waits for a person or an event, oldest first: in open turns, left by turns that ended BLOCKED over it, and
 * outcomes that nobody else can tell. `of`: in this turn only.
 */
export async function openApprovals(db: Db, tenant: string, of?: string): Promise<OpenWait[]> {
  const isLast = sql`not exists (select from pawl.turn later where later.session = ${turn.session} and later.n > ${turn.n})`;
  const isOutcome = sql`(${approval.asked}->>'kind' = 'outcome')`;
  // A sub-agent ends with its turn: whoever started it was told what it waited for.
  const isHeard = sql`not exists (select from pawl.sub_agent a where a.session = ${turn.session} and a.ended_at is not null)`;
  const isQuestion = sql`${approval.asked}->>'kind' <> 'permission'`;
  const rows = await db
    .select({ approval, session: turn.session, endedAt: turn.endedAt })
    .from(approval)
    .innerJoin(turn, eq(turn.id, approval.turn))
    .where(
      and(
        isNull(approval.answer),
        of === undefined ? undefined : eq(approval.turn, of),
        or(
          and(isOutcome, isOpenOutcome()),
          and(
            sql`not ${isOutcome}`,
            or(isNull(turn.endedAt), and(eq(turn.endReason, 'BLOCKED'), or(isQuestion, isLast), isHeard)),
          ),
        ),
        sql`exists (select from pawl.session s where s.id = ${turn.session} and s.tenant = ${tenant})`,
      ),
    )
    .orderBy(asc(approval.createdAt));
  return rows.map((row) => ({
    ...row.approval,
    session: row.session,
    openUntil: openUntil(row.approval, row.endedAt),
  }));
}

function openUntil({ asked, expiresAt }: ApprovalRow, endedAt: Date | null): Date | null {
  if (endedAt === null) return expiresAt;
  return asked.kind === 'outcome' ? null : new Date(endedAt.getTime() + POLICY.waits.keptMs);
}

/**
 * What turns have not heard of: answers whose giver died before telling, and outcomes that became known while a
 * person was asked.
 */
export async function untoldAnswers(db: Db, olderThanMs: number): Promise<{ turn: string; approval: string }[]> {
  const { rows } = await db.execute<{ turn: string; approval: string }>(sql`
    select a.turn, a.id as approval from pawl.approval a join pawl.turn t on t.id = a.turn
    join pawl.call c on c.key = a.call
    where a.settled_at is null and t.ended_at is null
      and (a.answered_at < clock_timestamp() - make_interval(secs => ${olderThanMs / 1_000})
        or (a.asked->>'kind' = 'outcome' and c.status is not null))
    order by a.answered_at limit 500`);
  return rows;
}

/** The turn has drawn its conclusion: from the answer, or from there being none. */
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
