import { and, eq, inArray, sql } from 'drizzle-orm';
import type { CallStatus } from '../../workflows/core/tools.ts';
import type { HostIdentity, ProcessIdentity } from '../process/identity.ts';
import type { Db } from './database.ts';
import { type NewEvent, recordEvents } from './events.ts';
import { type Fence, lockTurn } from './fence.ts';
import { storable, storableDeep } from './hash.ts';
import { perDatabase } from './prepared.ts';
import { blob, call, type EffectState, effect } from './schema.ts';

export type CallRow = typeof call.$inferSelect;
export type EffectRow = typeof effect.$inferSelect;

export async function readCall(db: Db, key: string): Promise<{ call: CallRow; effect: EffectRow | null } | null> {
  const [row] = await prepared(db).call.execute({ key });
  return row ?? null;
}

const prepared = perDatabase((db) => ({
  call: db
    .select()
    .from(call)
    .leftJoin(effect, eq(effect.key, call.key))
    .where(eq(call.key, sql.placeholder('key')))
    .prepare('call_by_key'),
}));

export interface AttemptIdentity {
  readonly attempt: string;
  readonly host: HostIdentity;
  readonly process: ProcessIdentity;
  readonly leaseMs: number;
}

/**
 * Marks an effect as started by this attempt: a compare-and-set from `intended`, or from the attempt that
 * is proved dead. False: somebody else holds it.
 */
export async function startEffect(
  db: Db,
  at: { readonly fence: Fence; readonly key: string; readonly from: string | null; readonly details: unknown },
  mine: AttemptIdentity,
): Promise<boolean> {
  return await db.transaction(async (tx) => {
    const owner = await lockTurn(tx, at.fence);
    const expected =
      at.from === null
        ? eq(effect.state, 'intended')
        : and(inArray(effect.state, ['started', 'unknown']), eq(effect.attempt, at.from));
    const taken = await tx
      .update(effect)
      .set({
        state: 'started',
        attempt: mine.attempt,
        leaseUntil: sql`clock_timestamp() + make_interval(secs => ${mine.leaseMs / 1_000})`,
        host: mine.host.host,
        boot: mine.host.boot,
        pid: mine.process.pid,
        pidStarted: mine.process.started,
        group: null,
        details: at.details ?? null,
        startedAt: sql`clock_timestamp()`,
      })
      .where(and(eq(effect.key, at.key), expected))
      .returning({ key: effect.key });
    if (taken.length === 0) return false;
    await recordEvents(tx, owner.session, [
      {
        key: `started/${mine.attempt}`,
        turn: owner.id,
        event: { kind: 'call.started', layer: 'batch', key: at.key, attempt: mine.attempt },
      },
    ]);
    return true;
  });
}

/** Prolongs the lease; false: this attempt no longer holds the effect and must stop. */
export async function renewLease(db: Db, key: string, attempt: string, leaseMs: number): Promise<boolean> {
  const rows = await db
    .update(effect)
    .set({ leaseUntil: sql`clock_timestamp() + make_interval(secs => ${leaseMs / 1_000})` })
    .where(and(eq(effect.key, key), eq(effect.attempt, attempt), eq(effect.state, 'started')))
    .returning({ key: effect.key });
  return rows.length > 0;
}

export async function noteGroup(db: Db, key: string, attempt: string, group: ProcessIdentity): Promise<void> {
  await db
    .update(effect)
    .set({ group })
    .where(and(eq(effect.key, key), eq(effect.attempt, attempt)));
}

/** Milliseconds until the lease of the current holder is over; 0 when it is. The database's clock counts. */
export async function leaseRemainingMs(db: Db, key: string): Promise<number> {
  const [row] = await db
    .select({
      ms: sql<number>`greatest(0, extract(epoch from (${effect.leaseUntil} - clock_timestamp())) * 1000)::float8`,
    })
    .from(effect)
    .where(eq(effect.key, key));
  return row?.ms ?? 0;
}

export interface CallClosing {
  readonly turn: string;
  readonly session: string;
  readonly tenant: string;
  readonly key: string;
  readonly tool: string;
  readonly status: CallStatus;
  readonly text: string;
  readonly output: { readonly hash: string; readonly data: Buffer } | null;
  readonly note: string | null;
  /** The ledger's new state; null for a reader. */
  readonly effect: { readonly state: EffectState; readonly attempt: string | null } | null;
  readonly events: readonly NewEvent[];
}

export interface FinishedCall {
  /** The status that stands. */
  readonly status: CallStatus;
  /** Whether it is the one given: nobody had told one before. */
  readonly isFirst: boolean;
}

/**
 * Keeps what became of a call. What the world has done is recorded at any time, also after the turn's end,
 * and the first result stands: a second one changes nothing.
 */
export async function finishCall(db: Db, closing: CallClosing): Promise<FinishedCall> {
  if (closing.output) {
    const { hash, data } = closing.output;
    await db.insert(blob).values({ hash, tenant: closing.tenant, size: data.length, data }).onConflictDoNothing();
  }
  const events = [...closing.events, finished(closing)];
  const values = [
    closing.key,
    closing.status,
    storable(closing.text),
    closing.output?.hash ?? null,
    closing.note === null ? null : storable(closing.note),
    closing.effect?.state ?? null,
    closing.effect?.attempt ?? null,
    closing.session,
    JSON.stringify(storableDeep(events)),
    JSON.stringify(closing.effect?.state === 'succeeded' ? [lateSuccess(closing)] : []),
    events.length,
  ];
  const { rows } = await db.$client.query<{ won: boolean; status: CallStatus | null }>({
    name: 'finish_call',
    text: FINISH,
    values,
  });
  if (rows[0]?.status) return { status: rows[0].status, isFirst: rows[0].won };
  // Another one won while this statement waited for it, and its snapshot is older than that.
  const [stands] = await db.select({ status: call.status }).from(call).where(eq(call.key, closing.key));
  return { status: stands?.status ?? closing.status, isFirst: false };
}

/** One statement: result, ledger and events stand or fall together. */
const FINISH = `
with won as (
  update pawl.call set status = $2, result = $3, blob = $4, note = $5, finished_at = clock_timestamp()
  where key = $1 and status is null returning key
), settled as (
  update pawl.effect set state = $6, settled_at = clock_timestamp()
  where key = $1 and $6::text is not null and ($7::text is null or attempt = $7)
    and (exists (select from won) or state in ('started', 'unknown')
      or ($6 = 'succeeded' and state in ('settled_absent', 'abandoned')))
  returning key
), told as (
  select case when exists (select from won) then $9::jsonb
              when exists (select from settled) then $10::jsonb else '[]'::jsonb end as events
), counter as (
  update pawl.session root set event_seq = root.event_seq + $11::int
  from pawl.session own, told where own.id = $8 and root.id = own.stream and told.events <> '[]'::jsonb
  returning root.id as stream, root.event_seq - $11::int as base
), events as (
  insert into pawl.event (stream, seq, key, session, turn, layer, kind, body)
  select counter.stream, counter.base + item.ordinality, item.value->>'key', $8, item.value->>'turn',
         item.value->'event'->>'layer', item.value->'event'->>'kind', item.value->'event'
  from counter, told, jsonb_array_elements(told.events) with ordinality item
  on conflict (stream, key) do nothing
)
select exists (select from won) as won,
       case when exists (select from won) then $2 else (select status from pawl.call where key = $1) end as status`;

export function finished(closing: Pick<CallClosing, 'key' | 'turn' | 'tool' | 'status' | 'note'>): NewEvent {
  const { key, tool, status, note } = closing;
  return {
    key: `finished/${key}`,
    turn: closing.turn,
    event: { kind: 'call.finished', layer: 'batch', key, tool, status, note },
  };
}

/** An attempt that was given up for lost came back with a success after all. */
function lateSuccess(closing: CallClosing): NewEvent {
  return {
    key: `late/${closing.key}`,
    turn: closing.turn,
    event: { kind: 'effect.settled', layer: 'batch', key: closing.key, as: 'late_success', by: 'attempt' },
  };
}

/** Effects of a turn that nobody has settled. */
export async function unsettledEffects(db: Db, turnId: string): Promise<EffectRow[]> {
  return await db
    .select()
    .from(effect)
    .where(and(eq(effect.turn, turnId), inArray(effect.state, ['intended', 'started', 'unknown'])));
}

/** Settles an effect by what was found out, with an event that says by whom; `from` must still be its state. */
export async function settleEffect(
  db: Db,
  at: { readonly key: string; readonly turn: string; readonly session: string; readonly from: EffectState },
  to: EffectState,
  event: NewEvent,
): Promise<void> {
  await db.transaction(async (tx) => {
    const rows = await tx
      .update(effect)
      .set({ state: to, settledAt: sql`clock_timestamp()` })
      .where(and(eq(effect.key, at.key), eq(effect.state, at.from)))
      .returning({ key: effect.key });
    if (rows.length > 0) await recordEvents(tx, at.session, [event]);
  });
}
