import { and, eq, isNull, sql } from 'drizzle-orm';
import type { HookEvent } from '../gate/hook-types.ts';
import type { Db, Tx } from './database.ts';
import { type NewEvent, recordEvents } from './events.ts';
import { storableDeep } from './hash.ts';
import { outbox } from './schema.ts';

/** Who reads rows of the outbox that are to be told to hooks. */
export const HOOKS_RECEIVER = 'hooks';

/** Something hooks are to be told of. References and codes; texts are looked up when it is told. */
export interface NewReport {
  /** Names it for ever: stored once, and told with it, so that a receiver knows a repetition. */
  readonly id: string;
  readonly body: ReportBody;
}

export interface ReportBody {
  readonly event: HookEvent;
  readonly session: string;
  readonly turn: string | null;
  /** The call it is about, by its key, and the name of its tool. */
  readonly call?: string;
  readonly tool?: string;
  /** Told as it is. */
  readonly facts?: Readonly<Record<string, string | number | null>>;
}

/** Keeps reports with what they tell of, in its transaction. */
export async function storeReports(tx: Tx | Db, reports: readonly NewReport[]): Promise<void> {
  if (reports.length === 0) return;
  await tx
    .insert(outbox)
    .values(reports.map(({ id, body }) => ({ receiver: HOOKS_RECEIVER, event: id, body: storableDeep(body) })))
    .onConflictDoNothing();
}

export interface ClaimedReport extends NewReport {
  readonly row: number;
}

/**
 * Takes reports that nobody tells right now, oldest first. Whoever dies before `closeReport` holds them until
 * the lease is over; then they are told once more.
 */
export async function claimReports(db: Db, limit: number, leaseMs: number): Promise<readonly ClaimedReport[]> {
  const { rows } = await db.execute<{ id: string; event: string; body: ReportBody }>(sql`
    update pawl.outbox o
    set body = o.body || jsonb_build_object('heldUntil', clock_timestamp() + make_interval(secs => ${leaseMs / 1_000}))
    where o.id in (
      select id from pawl.outbox
      where receiver = ${HOOKS_RECEIVER} and acknowledged_at is null
        and coalesce((body->>'heldUntil')::timestamptz, '-infinity') < clock_timestamp()
      order by created_at limit ${limit} for update skip locked)
    returning o.id, o.event, o.body`);
  return rows.map(({ id, event, body }) => ({ row: Number(id), id: event, body })).sort((a, b) => a.row - b.row);
}

/** It is told, with what went wrong on the way. */
export async function closeReport(db: Db, report: ClaimedReport, failures: readonly NewEvent[]): Promise<void> {
  await db.transaction(async (tx) => {
    await tx
      .update(outbox)
      .set({ acknowledgedAt: sql`clock_timestamp()` })
      .where(and(eq(outbox.id, report.row), isNull(outbox.acknowledgedAt)));
    await recordEvents(tx, report.body.session, failures);
  });
}
