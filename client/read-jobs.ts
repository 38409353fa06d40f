import { and, desc, eq, inArray, type SQL, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import type { Db } from '../activities/store/database.ts';
import { agent, goal, input, job, message, session, turn } from '../activities/store/schema.ts';
import type { ANSWER_TOOL } from '../workflows/core/ending-checks/structured-output.ts';
import { decodeCursor, encodeCursor } from './cursor.ts';
import {
  type Dropped,
  type Job,
  type JobState,
  type JobTurnEnd,
  goalJobState,
  jobStateOf,
  WAITS_FOR_SOMEBODY,
} from './job.ts';

export interface ListRequest {
  readonly cursor?: string | undefined;
  /** 1 to 200; 50 if left out. */
  readonly limit?: number | undefined;
  readonly state?: JobState | undefined;
}

export interface JobPage {
  readonly jobs: readonly Job[];
  /** Null on the last page. */
  readonly next: string | null;
}

export const PAGE = { usual: 50, max: 200 } as const;

/** What the job goes on with by itself, behind its newest turn. */
const continuation = alias(input, 'continuation');

/** jobStateOf, said in SQL. */
const stateSql = sql<JobState>`case
  when ${goal.status} is not null and (${turn.id} is not null or ${input.status} = 'withdrawn') then case
    when ${goal.isFinal} then 'done'
    when ${goal.status} ~ ${WAITS_FOR_SOMEBODY.source} then 'blocked'
    else 'running' end
  when ${turn.id} is null and ${input.status} in ('queued', 'forwarded') then 'queued'
  when ${turn.id} is null then 'done'
  when ${continuation.status} in ('queued', 'forwarded') then 'running'
  when ${continuation.status} is not null then 'done'
  when ${turn.endReason} is null then 'running'
  when ${turn.endReason} = 'BLOCKED' then 'blocked'
  when ${turn.endReason} = 'INTERRUPTED' then 'needs_attention'
  else 'done' end`;

const sortTime = sql<string>`to_char(${job.createdAt} at time zone 'utc', 'YYYY-MM-DD HH24:MI:SS.US"+00"')`;

const newestTurn = sql`${turn.id} = (select t.id from pawl.turn t where t.origin = ${job.input} order by t.n desc limit 1)`;

/** Ids are ours: whatever else stands in a request names nothing. */
function isJobId(id: string): boolean {
  return /^job_[0-9a-z]{1,64}$/.test(id);
}

function selectJobs(db: Db) {
  return db
    .select({ job, input, turn, goal: goal.status, continuation, stream: session.stream, agent: agent.name, sortTime })
    .from(job)
    .innerJoin(input, eq(input.id, job.input))
    .innerJoin(session, eq(session.id, job.session))
    .innerJoin(agent, eq(agent.hash, session.agent))
    .leftJoin(goal, eq(goal.id, job.goal))
    .leftJoin(turn, newestTurn)
    .leftJoin(continuation, eq(continuation.continues, turn.id))
    .$dynamic();
}

type JobRow = Awaited<ReturnType<typeof selectJobs>>[number];
type TurnRow = NonNullable<JobRow['turn']>;

/** A job with what only the facade needs to know of it. */
export interface FoundJob {
  readonly job: Job;
  readonly input: string;
  /** The input that is to open its next turn, if any. */
  readonly next: string | null;
  readonly stream: string;
  readonly head: string | null;
}

/** Null where the tenant has no such job. */
export async function findJob(db: Db, tenant: string, id: string): Promise<FoundJob | null> {
  if (!isJobId(id)) return null;
  const [row] = await selectJobs(db).where(and(eq(job.id, id), eq(job.tenant, tenant)));
  if (!row) return null;
  const { stream, turn: newest } = row;
  const next = nextOf(row)?.id ?? null;
  return { job: toJob(row), input: row.input.id, next, stream, head: newest?.head ?? null };
}

/** Newest first. Throws BadPosition for a cursor of another list. */
export async function listJobs(db: Db, tenant: string, request: ListRequest): Promise<JobPage> {
  const { cursor, state } = request;
  const limit = Math.min(Math.max(request.limit ?? PAGE.usual, 1), PAGE.max);
  const filter = { tenant, state: state ?? null };
  const wanted: SQL[] = [eq(job.tenant, tenant)];
  if (state) wanted.push(sql`${stateSql} = ${state}`);
  if (cursor !== undefined) {
    const after = decodeCursor(cursor, filter);
    wanted.push(sql`(${job.createdAt}, ${job.id}) < (${after.createdAt}::timestamptz, ${after.id})`);
  }
  const rows = await selectJobs(db)
    .where(and(...wanted))
    .orderBy(desc(job.createdAt), desc(job.id))
    .limit(limit + 1);
  const shown = rows.slice(0, limit);
  const last = shown[shown.length - 1];
  const more = rows.length > limit && last;
  return {
    jobs: shown.map(toJob),
    next: more ? encodeCursor({ createdAt: last.sortTime, id: last.job.id }, filter) : null,
  };
}

/** Jobs that are not done, newest first. */
export async function openJobs(db: Db, tenant: string): Promise<readonly Job[]> {
  const open: readonly JobState[] = ['queued', 'running', 'blocked', 'needs_attention'];
  const rows = await selectJobs(db)
    .where(and(eq(job.tenant, tenant), inArray(stateSql, [...open])))
    .orderBy(desc(job.createdAt), desc(job.id))
    .limit(PAGE.max);
  return rows.map(toJob);
}

/**
 * What the model said last on the chain of `head`, if its last message is one of its own. An answer that the
 * output limit has cut and that went on is one text.
 */
export async function lastWords(db: Db, head: string | null): Promise<string | null> {
  if (head === null) return null;
  const pieces: string[] = [];
  let at = await messageOf(db, head);
  if (at?.body.kind === 'tool_result' && at.body.tool === HANDS_IN) at = await messageOf(db, at.parent);
  while (at?.body.kind === 'assistant') {
    pieces.unshift(at.body.text);
    const before = await messageOf(db, at.parent);
    const isCut = before?.body.kind === 'reminder' && before.body.code === 'output_cut';
    at = isCut ? await messageOf(db, before.parent) : null;
  }
  const text = pieces.join('');
  return text === '' ? null : text;
}

async function messageOf(db: Db, hash: string): Promise<typeof message.$inferSelect | null> {
  const [row] = await db.select().from(message).where(eq(message.hash, hash));
  return row ?? null;
}

/** The tool that hands in structured answers. */
const HANDS_IN: typeof ANSWER_TOOL = 'StructuredOutput';

function stateOf(row: JobRow, end: JobTurnEnd | null, next: ReturnType<typeof nextOf>): JobState {
  if (row.goal !== null && (row.turn || row.input.status === 'withdrawn')) return goalJobState(row.goal);
  return jobStateOf(row.turn ? { turn: { end }, next: next?.status ?? null } : { turn: null, next: row.input.status });
}

function toJob(row: JobRow): Job {
  const end = row.turn ? endOf(row.turn) : null;
  const next = nextOf(row);
  return {
    id: row.job.id,
    session: row.job.session,
    agent: row.agent,
    ticket: row.job.ticket,
    state: stateOf(row, end, next),
    createdAt: row.job.createdAt.toISOString(),
    turn: row.turn?.id ?? null,
    end,
    dropped: next && droppedOf(next),
    goal: row.job.goal !== null && row.goal !== null ? { id: row.job.goal, status: row.goal } : null,
  };
}

function nextOf({ input: own, turn: newest, continuation: next }: JobRow): JobRow['input'] | null {
  return newest === null ? own : next;
}

function droppedOf({ status, droppedBy: by, droppedWhy: why, droppedAt }: JobRow['input']): Dropped | null {
  switch (status) {
    case 'withdrawn':
    case 'dropped_by_cancel':
    case 'hook_blocked':
      return { as: status, by, why, at: droppedAt?.toISOString() ?? null };
    case 'queued':
    case 'forwarded':
    case 'consumed':
      return null;
  }
}

/** The end row of a turn; a turn that has not ended has none. */
export function endOf(row: TurnRow): JobTurnEnd | null {
  const { endReason: reason, endDetail: detail, endDecidedBy: decidedBy, endSignal: signal, endPhase: phase } = row;
  if (!row.endedAt || !reason || !detail || !decidedBy || !signal || !phase || !row.endUsage) return null;
  return {
    reason,
    detail,
    decidedBy,
    signal,
    phase,
    step: row.endStep ?? 0,
    usage: row.endUsage,
    by: row.endBy,
    why: row.endWhy,
    recordedBy: row.recordedBy ?? 'turn',
    structuredOutput: row.endStructuredOutput,
    contract: row.endContract,
    resumeAt: row.endResumeAt?.toISOString() ?? null,
    at: row.endedAt.toISOString(),
  };
}
