import { and, asc, desc, eq, inArray, isNull, type SQL, sql } from 'drizzle-orm';
import type { Db } from '../../activities/store/database.ts';
import { openApprovals } from '../../activities/store/approvals.ts';
import { isUnlocked } from '../../activities/store/queued.ts';
import { call, effect, event, input, job, session, turn, usage } from '../../activities/store/schema.ts';
import type { InputStatus } from '../../workflows/core/inputs.ts';
import type { JournalEvent, Layer } from '../../workflows/core/journal.ts';
import { goalOf } from '../goals.ts';
import { findJob } from '../read-jobs.ts';
import type { UnknownEffect, Waiting } from './report.ts';

type TurnRow = typeof turn.$inferSelect;

/** What an id stands for: a turn, or an input that has none yet. */
export interface Subject {
  readonly id: string;
  readonly session: string;
  readonly queue: string;
  readonly job: string | null;
  readonly turn: TurnRow | null;
  readonly input: { readonly status: InputStatus; readonly createdAt: Date } | null;
}

/** Ids are ours: whatever else stands in a request names nothing. */
const ID = /^\w{1,80}(?:\/agent\/[1-9]\d{0,8}){0,9}(?<turn>\/[1-9]\d{0,8})?$/;

/** Null where the tenant has no turn, job or session of that id. A job, or a session, means its newest turn. */
export async function findSubject(db: Db, tenant: string, id: string): Promise<Subject | null> {
  const goal = await goalOf(db, { tenant, goal: id });
  if (goal) return await subjectOf(db, tenant, { id, session: goal.session, where: eq(turn.session, goal.session) });
  const parts = ID.exec(id);
  if (!parts) return null;
  const isTurn = parts.groups?.turn !== undefined;
  const asked = await findJob(db, tenant, id);
  const at = asked
    ? { session: asked.job.session, where: asked.job.turn === null ? null : eq(turn.id, asked.job.turn) }
    : isTurn
      ? { session: id.slice(0, id.lastIndexOf('/')), where: eq(turn.id, id) }
      : { session: id, where: eq(turn.session, id) };
  return await subjectOf(db, tenant, { id, isTurn, input: asked?.input, ...at });
}

interface Meant {
  readonly id: string;
  readonly session: string;
  readonly where: SQL | null;
  readonly input?: string | undefined;
  /** It names one turn: without that there is nothing. */
  readonly isTurn?: boolean;
}

async function subjectOf(db: Db, tenant: string, { id, isTurn, input: asked, ...at }: Meant): Promise<Subject | null> {
  const [owner] = await db
    .select({ id: session.id, queue: session.workspaceQueue })
    .from(session)
    .where(and(eq(session.id, at.session), eq(session.tenant, tenant)));
  if (!owner) return null;
  const [row] = at.where ? await db.select().from(turn).where(at.where).orderBy(desc(turn.n)).limit(1) : [];
  if (!row && isTurn) return null;
  const source = row?.origin ?? asked ?? null;
  const [first] = await db
    .select({ job: job.id, status: input.status, createdAt: input.createdAt })
    .from(input)
    .leftJoin(job, eq(job.input, input.id))
    .where(source === null ? eq(input.session, owner.id) : eq(input.id, source))
    .orderBy(asc(input.seq))
    .limit(1);
  return {
    id,
    session: owner.id,
    queue: owner.queue,
    job: first?.job ?? null,
    turn: row ?? null,
    input: first ?? null,
  };
}

type EndEvent = Extract<
  JournalEvent,
  { kind: 'stream.ended' | 'batch.ended' | 'driver.ended' | 'goal.ended' | 'goal.moved' }
>;

export interface LayerEnd<E extends EndEvent = EndEvent> {
  readonly event: E;
  readonly at: string;
}

export type LayerEnds = { readonly [E in EndEvent as E['layer']]: LayerEnd<E> | null };

/** The last end of each layer around a turn; the turn's own is in its row. */
export async function layerEnds(db: Db, turnId: string, owner: string): Promise<LayerEnds> {
  const rows = await db
    .selectDistinctOn([event.kind], { body: event.body, at: event.at })
    .from(event)
    .where(and(eq(event.turn, turnId), inArray(event.kind, ['stream.ended', 'batch.ended', 'driver.ended'])))
    .orderBy(event.kind, desc(event.seq));
  const last = <L extends Exclude<Layer, 'turn'>>(layer: L): LayerEnds[L] => {
    const row = rows.find(({ body }) => body.layer === layer);
    return (row ? { event: row.body, at: row.at.toISOString() } : null) as LayerEnds[L];
  };
  return { stream: last('stream'), batch: last('batch'), driver: last('driver'), goal: await goalMove(db, owner) };
}

/** Where the goal of a session went last: its rest, or its end. */
async function goalMove(db: Db, owner: string): Promise<LayerEnds['goal']> {
  const [row] = await db
    .select({ body: event.body, at: event.at })
    .from(event)
    .where(and(eq(event.session, owner), inArray(event.kind, ['goal.ended', 'goal.moved'])))
    .orderBy(desc(event.seq))
    .limit(1);
  return row ? ({ event: row.body, at: row.at.toISOString() } as LayerEnds['goal']) : null;
}

/** Requests to a provider that nobody has closed, oldest first. */
export async function openStreams(db: Db, turnId: string) {
  return await db
    .select({ step: usage.step, openedAt: usage.openedAt })
    .from(usage)
    .where(and(eq(usage.turn, turnId), isNull(usage.closedAt)))
    .orderBy(asc(usage.openedAt));
}

/** Inputs that wait in the session's queue; those an edit holds back are counted apart. */
export async function queued(db: Db, sessionId: string): Promise<{ readonly waiting: number; readonly held: number }> {
  const isHeld = sql`not ${isUnlocked}`;
  const [row] = await db
    .select({
      waiting: sql<number>`count(*)`.mapWith(Number),
      held: sql<number>`count(*) filter (where ${isHeld})`.mapWith(Number),
    })
    .from(input)
    .where(and(eq(input.session, sessionId), eq(input.status, 'queued')));
  return row ?? { waiting: 0, held: 0 };
}

/** The turn of a session that has no end yet. */
export async function openTurnOf(db: Db, sessionId: string): Promise<string | null> {
  const [row] = await db
    .select({ id: turn.id })
    .from(turn)
    .where(and(eq(turn.session, sessionId), isNull(turn.endedAt)));
  return row?.id ?? null;
}

const FOR = { permission: 'approval', outcome: 'outcome', question: 'input', event: 'event' } as const;

/** What the turn asked for, and may still be answered: after an end BLOCKED too. */
export async function unanswered(db: Db, tenant: string, turnId: string): Promise<Waiting[]> {
  const rows = await openApprovals(db, tenant, turnId);
  return rows.map(({ id, asked, openUntil }) => ({
    id,
    for: FOR[asked.kind],
    tool: asked.tool,
    until: openUntil?.toISOString() ?? null,
  }));
}

/** Calls whose outcome nobody knows; one that is `started` counts once its turn has ended. */
export async function unknownEffects(db: Db, turnId: string, hasEnded: boolean): Promise<UnknownEffect[]> {
  const rows = await db
    .select({ effect, note: call.note })
    .from(effect)
    .innerJoin(call, eq(call.key, effect.key))
    .where(and(eq(effect.turn, turnId), inArray(effect.state, hasEnded ? ['unknown', 'started'] : ['unknown'])))
    .orderBy(asc(effect.createdAt), asc(effect.key));
  return rows.map(({ effect: row, note }) => ({
    key: row.key,
    tool: row.tool,
    effect: row.effect,
    state: row.state,
    note,
    startedAt: row.startedAt?.toISOString() ?? null,
  }));
}
