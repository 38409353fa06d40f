import { and, eq, isNull } from 'drizzle-orm';
import { turnIdOf } from '../../workflows/messages.ts';
import { reminderText } from '../context/reminders.ts';
import { estimateMessage } from '../model/estimate.ts';
import { effectLines, effectsBeyond, findPlace, type Place, START } from './branches.ts';
import type { Db, Tx } from './database.ts';
import { type NewEvent, recordEvents } from './events.ts';
import { rootHash, sha256, storable } from './hash.ts';
import { openGoalOf } from './goals.ts';
import { newId } from './ids.ts';
import { input, session, subAgent, turn } from './schema.ts';
import { hasEnded } from './sub-agents.ts';
import { chainOn, writeLinks } from './transcript.ts';

export interface SessionAt {
  readonly tenant: string;
  readonly session: string;
  /** Who wants it. */
  readonly by: string;
}

type SessionRow = typeof session.$inferSelect;

export interface Branched {
  /** The message that was named, in full; for `start` the empty chain. */
  readonly at: string;
  /** The head that the session has now: that message, or what the model is told behind it. */
  readonly head: string;
  /** Calls behind that point that may have changed the world. */
  readonly effects: number;
}

export type Forked =
  | ({ readonly kind: 'forked'; readonly session: string; readonly isNew: boolean } & Branched)
  /** This id had brought another fork before. */
  | { readonly kind: 'conflict'; readonly session: string }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'unknown_message' };

export interface ForkRequest extends SessionAt {
  /** Hash of a message of the session, or `start`; its head if left out. */
  readonly at?: string | undefined;
  readonly title?: string | undefined;
  /** The same id again is the same fork. */
  readonly id?: string | undefined;
}

/** Opens a session beside another one: it has the same past up to a message, the same agent and the same workspace. */
export async function forkSession(db: Db, request: ForkRequest): Promise<Forked> {
  const { tenant, session: source, by } = request;
  return await db.transaction(async (tx) => {
    const row = await lockOwn(tx, request);
    if (!row) return { kind: 'unknown' };
    const own =
      request.id === undefined ? newId('ses') : `ses_${sha256('fork', tenant, source, request.id).slice(0, 30)}`;
    const [before] = await tx.select().from(session).where(eq(session.id, own));
    // Where no message is named, a repeat means the head of the first time.
    const place = await placeOf(tx, row, request.at ?? before?.forkedAt ?? row.head, own);
    if (!place) return { kind: 'unknown_message' };
    if (before && before.forkedAt !== place.hash) return { kind: 'conflict', session: own };
    const { head, effects } = await toldBehind(tx, row.id, place, 'forked');
    const branched: Branched = { at: place.hash, head: before?.head ?? head, effects };
    if (before) return { kind: 'forked', session: own, isNew: false, ...branched };
    const title = request.title === undefined ? row.title : storable(request.title);
    const { agent, plan, workspaceKind, workspacePath, workspaceQueue } = row;
    const same = { tenant, agent, plan, workspaceKind, workspacePath, workspaceQueue };
    await tx
      .insert(session)
      .values({ id: own, stream: own, head, title, forkedFrom: source, forkedAt: place.hash, ...same });
    const event = { kind: 'session.forked', layer: 'driver', source, at: place.hash, head, effects, by } as const;
    await recordEvents(tx, own, [{ key: `forked/${own}`, turn: null, event }]);
    return { kind: 'forked', session: own, isNew: true, ...branched };
  });
}

export type Rewound =
  | ({ readonly kind: 'rewound' } & Branched)
  | { readonly kind: 'unknown' }
  | { readonly kind: 'unknown_message' }
  | { readonly kind: 'busy'; readonly turn: string };

/**
 * Gives a session another head among its own messages. Nothing is deleted: the old head can be gone back to. What
 * calls behind that point did to the world is told to the model there. Refused while a turn is open.
 */
export async function rewindSession(
  db: Db,
  request: SessionAt & { readonly to: string; readonly why: string | null },
): Promise<Rewound> {
  const { by, why } = request;
  return await db.transaction(async (tx) => {
    const row = await lockOwn(tx, request);
    if (!row) return { kind: 'unknown' };
    const open = await openTurnOf(tx, row.id);
    if (open !== null) return { kind: 'busy', turn: open };
    const place = await placeOf(tx, row, request.to, row.id);
    if (!place) return { kind: 'unknown_message' };
    const { head, effects } = await toldBehind(tx, row.id, place, 'rewound');
    await tx.update(session).set({ head }).where(eq(session.id, row.id));
    await recordEvents(tx, row.id, [
      change({
        kind: 'session.rewound',
        layer: 'driver',
        from: row.head,
        to: place.hash,
        head,
        effects,
        by,
        why,
      }),
    ]);
    return { kind: 'rewound', at: place.hash, head, effects };
  });
}

/** False: the tenant has no such session. */
export async function renameSession(db: Db, request: SessionAt & { readonly title: string }): Promise<boolean> {
  return await db.transaction(async (tx) => {
    const row = await lockOwn(tx, request);
    if (!row) return false;
    const title = storable(request.title);
    if (row.title === title) return true;
    await tx.update(session).set({ title }).where(eq(session.id, row.id));
    await recordEvents(tx, row.id, [change({ kind: 'session.renamed', layer: 'driver', by: request.by })]);
    return true;
  });
}

export type Archived =
  | { readonly kind: 'done'; readonly changed: boolean }
  | { readonly kind: 'unknown' }
  /** A turn of it runs. */
  | { readonly kind: 'busy'; readonly turn: string }
  /** Inputs wait in it: each of them has to reach its outcome first. */
  | { readonly kind: 'waiting'; readonly inputs: number }
  /** A goal of it is not final: it would have no session to work in. */
  | { readonly kind: 'goal_open'; readonly goal: string }
  /** It is a sub-agent's that is over: nobody would hear what it took. */
  | { readonly kind: 'agent_ended' };

/** An archived session takes no inputs, answers or events; its past can be read and forked. */
export async function archiveSession(
  db: Db,
  request: SessionAt & { readonly archived: boolean; readonly why: string | null },
): Promise<Archived> {
  const { archived, by, why } = request;
  return await db.transaction(async (tx) => {
    const row = await lockOwn(tx, request);
    if (!row) return { kind: 'unknown' };
    if ((row.state === 'archived') === archived) return { kind: 'done', changed: false };
    if (!archived && (await hasEnded(tx, row.id))) return { kind: 'agent_ended' };
    const worksOn = archived ? await openGoalOf(tx, row.id) : null;
    if (worksOn) return { kind: 'goal_open', goal: worksOn.id };
    const open = await openTurnOf(tx, row.id);
    if (open !== null) return { kind: 'busy', turn: open };
    // Their ends are inputs of this session.
    const [running] = await tx
      .select({ id: subAgent.session })
      .from(subAgent)
      .where(and(eq(subAgent.parent, row.id), isNull(subAgent.endedAt)))
      .limit(1);
    if (running) return { kind: 'busy', turn: turnIdOf(running.id, 1) };
    const inputs = await tx.$count(input, and(eq(input.session, row.id), eq(input.status, 'queued')));
    if (inputs > 0) return { kind: 'waiting', inputs };
    await tx
      .update(session)
      .set({ state: archived ? 'archived' : 'open' })
      .where(eq(session.id, row.id));
    await recordEvents(tx, row.id, [change({ kind: 'session.archived', layer: 'driver', archived, by, why })]);
    return { kind: 'done', changed: true };
  });
}

/** Why a session takes nothing, for doors that don't lock it; null where it does. */
export async function closedBy(db: Db | Tx, id: string): Promise<'archived' | 'agent_ended' | null> {
  if (await hasEnded(db, id)) return 'agent_ended';
  const [row] = await db.select({ state: session.state }).from(session).where(eq(session.id, id));
  return row?.state === 'archived' ? 'archived' : null;
}

/** Each change is one of its own. */
function change(event: NewEvent['event']): NewEvent {
  return { key: `${event.kind}/${newId('evt')}`, turn: null, event };
}

/** While it is held no turn of the session opens, and nothing comes in. Null: the tenant has no such session. */
async function lockOwn(tx: Tx, { tenant, session: id }: SessionAt): Promise<SessionRow | null> {
  const own = and(eq(session.id, storable(id)), eq(session.tenant, tenant));
  const [row] = await tx.select().from(session).where(own).for('no key update');
  return row ?? null;
}

async function openTurnOf(tx: Tx, id: string): Promise<string | null> {
  const open = and(eq(turn.session, id), isNull(turn.endedAt));
  const [row] = await tx.select({ id: turn.id }).from(turn).where(open);
  return row?.id ?? null;
}

/** An empty chain is each session's own: its root covers whose it is. */
async function placeOf(tx: Tx, row: SessionRow, named: string, owner: string): Promise<Place | null> {
  const isEmpty = named === START || named === rootHash(row.tenant, row.id);
  return isEmpty ? { hash: rootHash(row.tenant, owner), depth: 0 } : await findPlace(tx, row.id, named);
}

/** Puts what the ledger knows of calls behind that point there as a message; none where there is nothing to tell. */
async function toldBehind(
  tx: Tx,
  id: string,
  place: Place,
  code: 'rewound' | 'forked',
): Promise<{ readonly head: string; readonly effects: number }> {
  const effects = await effectsBeyond(tx, id, place.hash);
  if (effects.length === 0) return { head: place.hash, effects: 0 };
  const body = { kind: 'reminder', code, text: reminderText(code, effectLines(effects)) } as const;
  const links = chainOn(place, [body], estimateMessage);
  await writeLinks(tx, links);
  return { head: links[0]?.hash ?? place.hash, effects: effects.length };
}
