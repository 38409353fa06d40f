import { and, eq, inArray, type SQL, sql } from 'drizzle-orm';
import type { CallStatus } from '../../workflows/core/tools.ts';
import type { HostIdentity, ProcessIdentity } from '../process/identity.ts';
import type { Db, Tx } from './database.ts';
import { type NewEvent, recordEvents } from './events.ts';
import { type Fence, type FencedTurn, lockTurn } from './fence.ts';
import { storable, storableDeep } from './hash.ts';
import { perDatabase } from './prepared.ts';
import { HOOKS_RECEIVER, type NewReport } from './reports.ts';
import { blob, call, type EffectState, effect } from './schema.ts';
import { Statement } from './statement.ts';

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

export interface EffectStart {
  readonly fence: Fence;
  readonly key: string;
  /** The attempt that it is taken over from; null: nobody has begun it. */
  readonly from: string | null;
  readonly details: unknown;
  /** It is one of the few things that a planning session may do. */
  readonly mayInPlan: boolean;
}

/**
 * Marks an effect as started by this attempt: a compare-and-set from `intended`, or from the attempt that
 * is proved dead. `held`: somebody else holds it. `planning`: the session plans, and nothing was begun.
 */
export async function startEffect(
  db: Db,
  at: EffectStart,
  mine: AttemptIdentity,
): Promise<'started' | 'held' | 'planning'> {
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
      .where(and(eq(effect.key, at.key), expected, at.from === null && !at.mayInPlan ? notPlanning(owner) : undefined))
      .returning({ key: effect.key });
    if (taken.length === 0) return await whyNot(tx, at);
    await recordEvents(tx, owner.session, [
      {
        key: `started/${mine.attempt}`,
        turn: owner.id,
        event: { kind: 'call.started', layer: 'batch', key: at.key, attempt: mine.attempt },
      },
    ]);
    return 'started';
  });
}

/** What was begun before the session planned goes on; only a first attempt is kept back. */
function notPlanning(owner: FencedTurn): SQL {
  return sql`not exists (select from pawl.session s where s.id = ${owner.session} and s.plan)`;
}

async function whyNot(tx: Tx, at: EffectStart): Promise<'held' | 'planning'> {
  if (at.from !== null || at.mayInPlan) return 'held';
  const [row] = await tx.select({ state: effect.state }).from(effect).where(eq(effect.key, at.key));
  return row?.state === 'intended' ? 'planning' : 'held';
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
  readonly effect: {
    readonly state: EffectState;
    readonly attempt: string | null;
    /** A cancel came before it was over. */
    readonly isCut: boolean;
  } | null;
  readonly events: readonly NewEvent[];
  /** What hooks are to be told, if this result is the one that stands. */
  readonly report?: NewReport | null;
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
  const [row] = await closingStatement(closing).run<{ won: boolean }>(db);
  if (row?.won) return { status: closing.status, isFirst: true };
  // Read apart: what another one wrote while this statement waited for it is not in its snapshot.
  const [stands] = await db.select({ status: call.status }).from(call).where(eq(call.key, closing.key));
  return { status: stands?.status ?? closing.status, isFirst: false };
}

/** Result, ledger and events stand or fall together. */
function closingStatement(closing: CallClosing): Statement {
  const { key, status, text, output, note, session } = closing;
  const to = new Statement('finish_call');
  const at = to.value(key);
  to.with(
    'won',
    `update pawl.call set status = ${to.value(status)}, result = ${to.value(storable(text))},
      blob = ${to.value(output?.hash)}, note = ${to.value(note === null ? null : storable(note))},
      finished_at = clock_timestamp()
    where key = ${at} and status is null returning key`,
  );
  if (closing.effect) addSettled(to, at, closing.effect);
  if (closing.report) addReport(to, closing.report);
  const elements = (of: readonly NewEvent[]) =>
    `select item.value as event, item.ordinality as n from jsonb_array_elements(${to.json(storableDeep(of))})
    with ordinality item`;
  const told = `${elements([...closing.events, finished(closing)])} where exists (select from won)`;
  const late = closing.effect?.state === 'succeeded' ? [lateSuccess(closing)] : [];
  to.with(
    'told',
    to.has('settled')
      ? `${told} union all ${elements(late)} where exists (select from settled) and not exists (select from won)`
      : told,
  );
  to.with(
    'counter',
    `update pawl.session root set event_seq = root.event_seq + (select count(*) from told)
    from pawl.session own where own.id = ${to.value(session)} and root.id = own.stream and exists (select from told)
    returning root.id as stream, root.event_seq - (select count(*) from told) as base`,
  );
  to.with(
    'events',
    `insert into pawl.event (stream, seq, key, session, turn, layer, kind, body)
    select counter.stream, counter.base + told.n, told.event->>'key', ${to.value(session)}, told.event->>'turn',
           told.event->'event'->>'layer', told.event->'event'->>'kind', told.event->'event'
    from counter, told
    on conflict (stream, key) do nothing`,
  );
  return to.select('exists (select from won) as won');
}

function addReport(to: Statement, { id, body }: NewReport): void {
  to.with(
    'reported',
    `insert into pawl.outbox (receiver, event, body)
    select ${to.value(HOOKS_RECEIVER)}, ${to.value(id)}, ${to.json(body)} from won
    on conflict do nothing`,
  );
}

/** The first word stands, save that a success which comes late corrects what was given up. */
function addSettled(to: Statement, at: string, { state, attempt, isCut }: NonNullable<CallClosing['effect']>): void {
  const [now, by] = [to.value(state), to.value(attempt)];
  to.with(
    'settled',
    `update pawl.effect set state = ${now}, settled_at = clock_timestamp(),
      cut_at = case when ${to.value(isCut)}::boolean then clock_timestamp() else cut_at end
    where key = ${at} and (${by}::text is null or attempt = ${by})
      and (exists (select from won) or state in ('started', 'unknown')
        or (${now} = 'succeeded' and state in ('settled_absent', 'abandoned')))
    returning key`,
  );
}

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
