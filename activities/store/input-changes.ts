import { and, eq, sql } from 'drizzle-orm';
import type { PgUpdateSetSource } from 'drizzle-orm/pg-core';
import { type InputKind, type InputStatus, JOINS_RUNNING_TURN, SAID_TO_TURN } from '../../workflows/core/inputs.ts';
import type { JournalEvent } from '../../workflows/core/journal.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Db, Tx } from './database.ts';
import { type NewEvent, recordEvents } from './events.ts';
import { storable } from './hash.ts';
import { newId } from './ids.ts';
import { isUnlocked } from './queued.ts';
import { input, session } from './schema.ts';
import { isGivenWork } from './screening.ts';

/** Who wants to change which input. */
export interface ChangeOf {
  readonly tenant: string;
  readonly input: string;
  readonly by: string;
}

export type InputRefused =
  | { readonly kind: 'unknown' }
  /** A turn or a hook has it, or nobody will ever hear it. */
  | {
      readonly kind: 'taken';
      readonly status: InputStatus | 'left_over';
      readonly turn: string | null;
      readonly by: string | null;
    }
  /** An answer, a directive, a wake: not something that a person wrote. */
  | { readonly kind: 'not_written'; readonly source: InputKind }
  /** Somebody else edits it. ISO time. */
  | { readonly kind: 'locked'; readonly by: string; readonly until: string };

export interface InputChanged {
  readonly kind: 'changed';
  readonly session: string;
}

type Change = 'edit' | 'withdraw' | 'lock' | 'unlock';

type Row = typeof input.$inferSelect & { readonly isLocked: boolean; readonly parent: string | null };

/** Gives a waiting input another text, and lets go of the editor's own lock. */
export async function editInput(
  db: Db,
  at: ChangeOf & { readonly text: string },
): Promise<InputChanged | InputRefused> {
  return await change(db, 'edit', at, async (tx) => {
    await update(tx, at.input, { body: storable(at.text), editLockBy: null, editLockUntil: null });
    return told({ kind: 'input.edited', layer: 'driver', input: at.input, by: at.by });
  });
}

/** Takes a waiting input back. `before`: it was taken back already, and by whom. */
export async function withdrawInput(
  db: Db,
  at: ChangeOf & { readonly why: string | null },
): Promise<InputChanged | { readonly kind: 'before'; readonly by: string | null } | InputRefused> {
  const done = await change(db, 'withdraw', at, async (tx) => {
    await markWithdrawn(tx, at);
    return withdrawnEvent(at);
  });
  return done.kind === 'taken' && done.status === 'withdrawn' ? { kind: 'before', by: done.by } : done;
}

/** Keeps a waiting input for one editor; every turn passes it over until the lock is let go, or its time is over. */
export async function lockInput(
  db: Db,
  at: ChangeOf,
): Promise<(InputChanged & { readonly until: string }) | InputRefused> {
  let until = '';
  const done = await change(db, 'lock', at, async (tx, { kind }) => {
    const lockSeconds = POLICY.session.editLockMs / 1_000;
    const [row] = await update(tx, at.input, {
      editLockBy: storable(at.by),
      editLockUntil: sql`clock_timestamp() + make_interval(secs => ${lockSeconds})`,
      // What would join a running turn is told of again when the lock is over.
      ...(JOINS_RUNNING_TURN.includes(kind) ? { dispatchedAt: null } : {}),
    });
    until = row?.editLockUntil?.toISOString() ?? '';
    return told({ kind: 'input.locked', layer: 'driver', input: at.input, by: at.by, until });
  });
  return done.kind === 'changed' ? { ...done, until } : done;
}

/** Lets go of one's own lock. */
export async function unlockInput(db: Db, at: ChangeOf): Promise<InputChanged | InputRefused> {
  return await change(db, 'unlock', at, async (tx, row) => {
    if (!row.isLocked) return null;
    await update(tx, at.input, { editLockBy: null, editLockUntil: null });
    return told({ kind: 'input.unlocked', layer: 'driver', input: at.input, by: at.by });
  });
}

/** Looks whether the change is allowed while nobody else can decide about the input, then makes it. */
async function change(
  db: Db,
  what: Change,
  at: ChangeOf,
  make: (tx: Tx, row: Row) => Promise<NewEvent | null>,
): Promise<InputChanged | InputRefused> {
  return await db.transaction(async (tx) => {
    const row = await lockRow(tx, at);
    if (!row) return { kind: 'unknown' };
    const refused = refusal(row, what, at.by);
    if (refused) return refused;
    const event = await make(tx, row);
    await recordEvents(tx, row.session, event ? [event] : []);
    return { kind: 'changed', session: row.session };
  });
}

/** Each change is one of its own. */
function told(event: JournalEvent): NewEvent {
  return { key: `${event.kind}/${newId('evt')}`, turn: null, event };
}

/** The session before the input: the order in which its own look at the queue locks. */
async function lockRow(tx: Tx, { tenant, input: id }: ChangeOf): Promise<Row | null> {
  const [owner] = await tx
    .select({ session: input.session, tenant: session.tenant, parent: session.parent })
    .from(input)
    .innerJoin(session, eq(session.id, input.session))
    .where(eq(input.id, id));
  if (owner?.tenant !== tenant) return null;
  await tx.execute(sql`select from pawl.session where id = ${owner.session} for no key update`);
  const isLocked = sql<boolean>`not ${isUnlocked}`;
  const [found] = await tx.select({ row: input, isLocked }).from(input).where(eq(input.id, id)).for('no key update');
  return found ? { ...found.row, isLocked: found.isLocked, parent: owner.parent } : null;
}

/** Null: nothing is in the way. */
function refusal(row: Row, what: Change, by: string): InputRefused | null {
  const { kind: source, status, turn } = row;
  // Nor is the work of a sub-agent: whoever gave it waits for its end.
  const isWritten = (source === 'prompt' && !isGivenWork(row, row.parent)) || SAID_TO_TURN.includes(source);
  if (!isWritten) return { kind: 'not_written', source };
  if (status !== 'queued') return { kind: 'taken', status, turn, by: row.droppedBy };
  // A turn has had it, and hooks have let this very text pass.
  if (row.isLeftOver && what !== 'withdraw') return { kind: 'taken', status: 'left_over', turn: null, by: null };
  if (!row.isLocked || row.editLockBy === storable(by)) return null;
  return { kind: 'locked', by: row.editLockBy ?? '', until: row.editLockUntil?.toISOString() ?? '' };
}

async function update(tx: Tx, id: string, set: PgUpdateSetSource<typeof input>) {
  return await tx.update(input).set(set).where(eq(input.id, id)).returning({ editLockUntil: input.editLockUntil });
}

export interface Withdrawal {
  readonly input: string;
  readonly by: string;
  readonly why: string | null;
}

/** False: a turn has opened with it meanwhile. Its session is locked. */
export async function markWithdrawn(tx: Tx, { input: id, by, why }: Withdrawal): Promise<boolean> {
  const dropped = { droppedBy: storable(by), droppedWhy: why === null ? null : storable(why) };
  const taken = await tx
    .update(input)
    .set({ status: 'withdrawn', ...dropped, droppedAt: sql`clock_timestamp()` })
    .where(and(eq(input.id, id), eq(input.status, 'queued')))
    .returning({ id: input.id });
  return taken.length > 0;
}

export function withdrawnEvent({ input: id, by, why }: Withdrawal): NewEvent {
  const event = { kind: 'input.dropped', layer: 'driver', input: id, status: 'withdrawn', by, why } as const;
  return { key: `withdrawn/${id}`, turn: null, event };
}
