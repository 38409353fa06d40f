import { asc, eq, gt, and, inArray } from 'drizzle-orm';
import type { Db } from '../activities/store/database.ts';
import { sha256, storable } from '../activities/store/hash.ts';
import { newId } from '../activities/store/ids.ts';
import {
  editInput,
  type InputRefused,
  lockInput,
  unlockInput,
  withdrawInput,
} from '../activities/store/input-changes.ts';
import { markDispatched, storeInput } from '../activities/store/intake.ts';
import { input, turn } from '../activities/store/schema.ts';
import type { EndReason } from '../workflows/core/ends.ts';
import type { InputClass, InputKind, InputStatus } from '../workflows/core/inputs.ts';
import type { ClientEngine } from './engine.ts';
import { BadPosition, onStore } from './faults.ts';
import { refuseBadId } from './own-id.ts';
import { PAGE } from './read-jobs.ts';
import { sessionOf } from './session-of.ts';

/**
 * How an input reaches a session. `prompt`: it waits for idle, and gets an end of its own. `steer`: the running turn
 * takes it in at its next safe point. `send_now`: what the turn streams or waits for is cut short for it. When idle
 * each starts a turn.
 */
export const MODES = ['prompt', 'steer', 'send_now'] as const;

export type InputMode = (typeof MODES)[number];

/** Something further that is said to a session. */
export interface NewPrompt {
  readonly text: string;
  /** `prompt` if left out. */
  readonly mode?: InputMode | undefined;
  /** The sender's own id: the same one again is the same input. */
  readonly id?: string | undefined;
  readonly by: string;
}

export type Sent =
  | {
      readonly kind: 'accepted';
      readonly input: string;
      readonly session: string;
      /** False when the id had brought this input before. */
      readonly isNew: boolean;
    }
  | { readonly kind: 'conflict'; readonly input: string }
  | { readonly kind: 'archived' | 'agent_ended' }
  | { readonly kind: 'full'; readonly waiting: number };

/** `changed`: it is as was asked; `before`: it was withdrawn before, by whom. */
export type InputAnswer =
  | { readonly kind: 'changed' }
  | { readonly kind: 'before'; readonly by: string | null }
  | Exclude<InputRefused, { kind: 'unknown' }>;

export type LockAnswer =
  | { readonly kind: 'locked_now'; readonly until: string }
  | Exclude<InputRefused, { kind: 'unknown' }>;

/** An input of a session and what has become of it. Times are ISO. */
export interface SessionInput {
  readonly id: string;
  readonly session: string;
  readonly kind: InputKind;
  readonly class: InputClass;
  readonly status: InputStatus;
  readonly text: string;
  /** Who sent it. */
  readonly by: string | null;
  readonly createdAt: string;
  /** The turn that has it, or had it, and how that one ended. */
  readonly turn: string | null;
  readonly end: EndReason | null;
  /** The message it became. */
  readonly message: string | null;
  /** A turn had it and ended without it: it goes first next time. */
  readonly isLeftOver: boolean;
  readonly lock: { readonly by: string; readonly until: string } | null;
  /** Who took it out of the queue, and what they said. */
  readonly dropped: { readonly by: string | null; readonly why: string | null; readonly at: string | null } | null;
}

export interface InputList {
  readonly cursor?: string | undefined;
  /** 1 to 200; 50 if left out. */
  readonly limit?: number | undefined;
  /** Only what still waits: queued, or with a turn that has not heard it. */
  readonly waiting?: boolean | undefined;
}

export interface InputPage {
  readonly inputs: readonly SessionInput[];
  /** Null on the last page. */
  readonly next: string | null;
}

/** What one can do with the input queue of a session. Another tenant's id looks like an unknown one: null. */
export interface InputRuns {
  /** Says something to a session, or to that of a job. Throws BadId, EngineAway or StoreAway; repeating under an id is safe. */
  send(tenant: string, sessionOrJob: string, prompt: NewPrompt): Promise<Sent | null>;
  /** Oldest first. Throws BadPosition for a cursor that is none. */
  inputs(tenant: string, sessionOrJob: string, request?: InputList): Promise<InputPage | null>;
  editInput(tenant: string, input: string, edit: { text: string; by: string }): Promise<InputAnswer | null>;
  withdrawInput(
    tenant: string,
    input: string,
    asked: { by: string; why?: string | undefined },
  ): Promise<InputAnswer | null>;
  /** Keeps an input for one editor for 5 minutes; turns pass it over meanwhile. */
  lockInput(tenant: string, input: string, asked: { by: string }): Promise<LockAnswer | null>;
  unlockInput(tenant: string, input: string, asked: { by: string }): Promise<InputAnswer | null>;
}

interface InputDeps {
  readonly db: Db;
  readonly engine: ClientEngine;
}

export function inputRuns({ db, engine }: InputDeps): InputRuns {
  /** The queue may have something to do now. */
  const told = async (done: { kind: 'changed'; session: string } | InputRefused): Promise<InputAnswer | null> => {
    if (done.kind === 'unknown') return null;
    if (done.kind !== 'changed') return done;
    await engine.look(done.session);
    return { kind: 'changed' };
  };
  return {
    send: (tenant, of, prompt) => send({ db, engine }, { tenant, of }, prompt),
    inputs: (tenant, of, request = {}) => onStore(() => listInputs(db, { tenant, of }, request)),
    editInput: async (tenant, id, edit) =>
      await told(await onStore(() => editInput(db, { tenant, input: storable(id), ...edit }))),
    async withdrawInput(tenant, id, { by, why = null }: { by: string; why?: string | null | undefined }) {
      const done = await onStore(() => withdrawInput(db, { tenant, input: storable(id), by, why }));
      return done.kind === 'before' ? done : await told(done);
    },
    async lockInput(tenant, id, { by }) {
      const done = await onStore(() => lockInput(db, { tenant, input: storable(id), by }));
      if (done.kind === 'unknown') return null;
      return done.kind === 'changed' ? { kind: 'locked_now', until: done.until } : done;
    },
    unlockInput: async (tenant, id, { by }) =>
      await told(await onStore(() => unlockInput(db, { tenant, input: storable(id), by }))),
  };
}

async function send(
  { db, engine }: InputDeps,
  at: { readonly tenant: string; readonly of: string },
  { text, mode: kind = 'prompt', id, by }: NewPrompt,
): Promise<Sent | null> {
  refuseBadId(id);
  const session = await onStore(() => sessionOf(db, at));
  if (session === null) return null;
  // A sender's own id names something in this session only.
  const own = id === undefined ? newId('in') : `in_${sha256('input', session, id).slice(0, 30)}`;
  const stored = await onStore(() => storeInput(db, { id: own, session, kind, text, sender: by }));
  switch (stored) {
    case 'accepted':
    case 'known':
      await engine.look(session);
      // Not marked means told once more by the sweeper, which changes nothing.
      await markDispatched(db, [own]).catch(() => {});
      return { kind: 'accepted', input: own, session, isNew: stored === 'accepted' };
    case 'conflict':
      return { kind: 'conflict', input: own };
    case 'archived':
    case 'agent_ended':
      return { kind: stored };
    case 'full':
      return { kind: 'full', waiting: await onStore(() => countWaiting(db, session)) };
  }
}

async function countWaiting(db: Db, session: string): Promise<number> {
  return await db.$count(input, and(eq(input.session, session), eq(input.status, 'queued')));
}

const WAITING: readonly InputStatus[] = ['queued', 'forwarded'];

async function listInputs(
  db: Db,
  at: { readonly tenant: string; readonly of: string },
  { cursor, waiting = false, ...request }: InputList,
): Promise<InputPage | null> {
  const session = await sessionOf(db, at);
  if (session === null) return null;
  const limit = Math.min(Math.max(request.limit ?? PAGE.usual, 1), PAGE.max);
  const rows = await db
    .select({ row: input, end: turn.endReason })
    .from(input)
    .leftJoin(turn, eq(turn.id, input.turn))
    .where(
      and(
        eq(input.session, session),
        cursor === undefined ? undefined : gt(input.seq, positionOf(cursor)),
        waiting ? inArray(input.status, [...WAITING]) : undefined,
      ),
    )
    .orderBy(asc(input.seq))
    .limit(limit + 1);
  const shown = rows.slice(0, limit);
  const last = shown[shown.length - 1];
  return { inputs: shown.map(toInput), next: rows.length > limit && last ? String(last.row.seq) : null };
}

function positionOf(cursor: string): number {
  if (!/^\d{1,15}$/.test(cursor)) {
    throw new BadPosition('The cursor is not one that a list gave out: begin again without it.');
  }
  return Number(cursor);
}

function toInput({ row, end }: { row: typeof input.$inferSelect; end: EndReason | null }): SessionInput {
  const { editLockBy, editLockUntil, droppedBy: by, droppedWhy: why, droppedAt } = row;
  const isLocked = row.status === 'queued' && editLockUntil !== null && editLockUntil.getTime() > Date.now();
  const isDropped = row.status !== 'queued' && !WAITING.includes(row.status) && row.status !== 'consumed';
  return {
    id: row.id,
    session: row.session,
    kind: row.kind,
    class: row.class,
    status: row.status,
    text: row.body,
    by: row.sender,
    createdAt: row.createdAt.toISOString(),
    turn: row.turn,
    end,
    message: row.message,
    isLeftOver: row.isLeftOver,
    lock: isLocked ? { by: editLockBy ?? '', until: editLockUntil.toISOString() } : null,
    dropped: isDropped ? { by, why, at: droppedAt?.toISOString() ?? null } : null,
  };
}
