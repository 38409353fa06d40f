import { and, desc, eq, isNull, sql, type SQL } from 'drizzle-orm';
import type { Db } from '../activities/store/database.ts';
import { agent, input, session, turn } from '../activities/store/schema.ts';
import {
  type Archived,
  archiveSession,
  type Forked,
  forkSession,
  renameSession,
  type Rewound,
  rewindSession,
} from '../activities/store/session-life.ts';
import { decodeCursor, encodeCursor } from './cursor.ts';
import { onStore } from './faults.ts';
import { type MessageList, type MessagePage, readMessages } from './messages.ts';
import { refuseBadId } from './own-id.ts';
import { PAGE } from './read-jobs.ts';
import { sessionOf } from './session-of.ts';

export type SessionState = 'open' | 'archived';

/** One conversation. Times are ISO. */
export interface Session {
  readonly id: string;
  readonly title: string | null;
  readonly agent: string;
  readonly state: SessionState;
  readonly plan: boolean;
  /** Hash of its newest message. */
  readonly head: string;
  /** Where it was forked, if it was: the other session, and the message. */
  readonly forkedFrom: { readonly session: string; readonly at: string } | null;
  readonly workspace: { readonly kind: 'host' | 'shared'; readonly path: string };
  /** The turn that runs. */
  readonly turn: string | null;
  /** Inputs that wait for a turn. */
  readonly waiting: number;
  readonly createdAt: string;
}

export interface SessionList {
  readonly cursor?: string | undefined;
  /** 1 to 200; 50 if left out. */
  readonly limit?: number | undefined;
  /** Both if left out. */
  readonly state?: SessionState | undefined;
}

export interface SessionPage {
  readonly sessions: readonly Session[];
  /** Null on the last page. */
  readonly next: string | null;
}

export interface ForkSession {
  /** Hash of a message of the session or its first digits (8 at least), or `start`; its head if left out. */
  readonly at?: string | undefined;
  readonly title?: string | undefined;
  /** The same id again is the same fork. */
  readonly id?: string | undefined;
  readonly by: string;
}

export interface RewindSession {
  /** Hash of a message of the session or its first digits (8 at least), or `start`. */
  readonly to: string;
  readonly by: string;
  readonly why?: string | undefined;
}

type Known<T extends { readonly kind: string }> = Exclude<T, { kind: 'unknown' }>;

export type SessionForked = Known<Forked>;
export type SessionRewound = Known<Rewound>;
export type SessionArchived = Known<Archived>;
/** What one can do with sessions. Another tenant's id looks like an unknown one: null. */
export interface SessionRuns {
  /** Newest first. Throws BadPosition for a cursor of another list. */
  sessions(tenant: string, request?: SessionList): Promise<SessionPage>;
  /** A session, or that of a job. */
  session(tenant: string, sessionOrJob: string): Promise<Session | null>;
  /** The transcript, newest message first: what a head may be. */
  messages(tenant: string, sessionOrJob: string, request?: MessageList): Promise<MessagePage | null>;
  /** A new session with the same past up to a message, in the same workspace. Throws BadId. */
  fork(tenant: string, session: string, request: ForkSession): Promise<SessionForked | null>;
  /** Another head; nothing is deleted, and the world is not rewound. */
  rewind(tenant: string, session: string, request: RewindSession): Promise<SessionRewound | null>;
  /** False: there is no such session. */
  rename(tenant: string, session: string, request: { title: string; by: string }): Promise<boolean>;
  /** An archived session takes nothing, until it is taken out of the archive. */
  archive(
    tenant: string,
    session: string,
    request: { archived: boolean; by: string; why?: string | undefined },
  ): Promise<SessionArchived | null>;
}

export function sessionRuns(db: Db): SessionRuns {
  return {
    sessions: (tenant, request = {}) => onStore(() => listSessions(db, tenant, request)),
    session: (tenant, of) => onStore(() => findSession(db, tenant, of)),
    messages: (tenant, of, request = {}) => onStore(() => readMessages(db, { tenant, of }, request)),
    async fork(tenant, id, request) {
      refuseBadId(request.id);
      return known(await onStore(() => forkSession(db, { tenant, session: id, ...request })));
    },
    async rewind(
      tenant,
      id,
      { why = null, ...request }: Omit<RewindSession, 'why'> & { why?: string | null | undefined },
    ) {
      return known(await onStore(() => rewindSession(db, { tenant, session: id, why, ...request })));
    },
    rename: (tenant, id, request) => onStore(() => renameSession(db, { tenant, session: id, ...request })),
    async archive(tenant, id, { archived, by, why }) {
      return known(await onStore(() => archiveSession(db, { tenant, session: id, archived, by, why: why ?? null })));
    },
  };
}

function known<T extends { readonly kind: string }>(answer: T): Known<T> | null {
  return answer.kind === 'unknown' ? null : (answer as Known<T>);
}

const sortTime = sql<string>`to_char(${session.createdAt} at time zone 'utc', 'YYYY-MM-DD HH24:MI:SS.US+00')`;
const waiting = sql<number>`(select count(*)::int from ${input} where ${input.session} = ${session.id} and ${input.status} = 'queued')`;

function selectSessions(db: Db) {
  return db
    .select({ session, agent: agent.name, turn: turn.id, waiting, sortTime })
    .from(session)
    .innerJoin(agent, eq(agent.hash, session.agent))
    .leftJoin(turn, and(eq(turn.session, session.id), isNull(turn.endedAt)))
    .$dynamic();
}

type Row = Awaited<ReturnType<typeof selectSessions>>[number];

async function findSession(db: Db, tenant: string, of: string): Promise<Session | null> {
  const id = await sessionOf(db, { tenant, of });
  if (id === null) return null;
  const [row] = await selectSessions(db).where(eq(session.id, id));
  return row ? toSession(row) : null;
}

async function listSessions(db: Db, tenant: string, { cursor, state, ...request }: SessionList): Promise<SessionPage> {
  const limit = Math.min(Math.max(request.limit ?? PAGE.usual, 1), PAGE.max);
  const filter = { list: 'sessions', tenant, state: state ?? null };
  // Those of sub-agents are shown with what started them.
  const wanted: SQL[] = [eq(session.tenant, tenant), isNull(session.parent)];
  if (state) wanted.push(eq(session.state, state));
  if (cursor !== undefined) {
    const after = decodeCursor(cursor, filter);
    wanted.push(sql`(${session.createdAt}, ${session.id}) < (${after.createdAt}::timestamptz, ${after.id})`);
  }
  const rows = await selectSessions(db)
    .where(and(...wanted))
    .orderBy(desc(session.createdAt), desc(session.id))
    .limit(limit + 1);
  const shown = rows.slice(0, limit);
  const last = shown[shown.length - 1];
  const more = rows.length > limit && last;
  return {
    sessions: shown.map(toSession),
    next: more ? encodeCursor({ createdAt: last.sortTime, id: last.session.id }, filter) : null,
  };
}

function toSession({ session: row, agent: name, turn: running, waiting: inputs }: Row): Session {
  const { forkedFrom, forkedAt } = row;
  return {
    id: row.id,
    title: row.title,
    agent: name,
    state: row.state,
    plan: row.plan,
    head: row.head,
    forkedFrom: forkedFrom !== null && forkedAt !== null ? { session: forkedFrom, at: forkedAt } : null,
    workspace: { kind: row.workspaceKind, path: row.workspacePath },
    turn: running,
    waiting: inputs,
    createdAt: row.createdAt.toISOString(),
  };
}
