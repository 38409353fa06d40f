import { and, asc, desc, eq, inArray, isNull, notInArray, or, sql } from 'drizzle-orm';
import { BACKGROUND, JOINS_RUNNING_TURN } from '../../workflows/core/inputs.ts';
import type { Limits } from '../../workflows/core/policy.ts';
import { turnIdOf } from '../../workflows/messages.ts';
import type { Db, Tx } from './database.ts';
import { type NewEvent, recordEvents } from './events.ts';
import { agent, cancel, input, outbox, session, type StoredTool, toolList, turn } from './schema.ts';
import { contentHash } from './hash.ts';

export interface OpenTurn {
  readonly turn: string;
  readonly agent: string;
  readonly agentName: string;
  readonly tools: string;
  readonly workspaceQueue: string;
  readonly head: string;
  readonly input: string;
  readonly limits: Limits;
  /** Somebody wanted it cancelled before its workflow could be told. */
  readonly cancelAsked: boolean;
}

/** What a session is to do next: its queue is the store's, the session workflow is the hand. */
export type Advance =
  | { readonly kind: 'start'; readonly turn: OpenTurn }
  | { readonly kind: 'running'; readonly turn: string; readonly forward: readonly string[] }
  | { readonly kind: 'idle' };

/** The model's view of the tools an agent names, as this worker has them. */
export type DescribeTools = (names: readonly string[]) => readonly StoredTool[];

type SessionRow = typeof session.$inferSelect;

/**
 * Takes notice of what happened and says what is next; each call is one transaction that may be repeated.
 * `started` is the turn this run of the session workflow has started or adopted already.
 */
export async function advance(db: Db, id: string, started: string | null, describe: DescribeTools): Promise<Advance> {
  return await db.transaction(async (tx) => {
    const [row] = await tx.select().from(session).where(eq(session.id, id)).for('no key update');
    if (!row) return { kind: 'idle' };
    await acknowledge(tx, `session:${id}`);
    const [open] = await tx
      .select()
      .from(turn)
      .where(and(eq(turn.session, id), isNull(turn.endedAt)));
    if (open && open.id === started)
      return { kind: 'running', turn: open.id, forward: await takeJoining(tx, open.id, id) };
    if (open) return { kind: 'start', turn: await describeOpen(tx, row, open) };
    const promoted = await promote(tx, row, describe);
    if (promoted) return { kind: 'start', turn: promoted };
    await recordEvents(tx, id, await idleEvents(tx, id));
    return { kind: 'idle' };
  });
}

async function acknowledge(tx: Tx, receiver: string): Promise<void> {
  await tx
    .update(outbox)
    .set({ acknowledgedAt: sql`clock_timestamp()` })
    .where(and(eq(outbox.receiver, receiver), isNull(outbox.acknowledgedAt)));
}

/** Inputs that need not wait for idle: bound to the running turn, in their order. */
async function takeJoining(tx: Tx, turnId: string, sessionId: string): Promise<string[]> {
  await tx
    .update(input)
    .set({ status: 'forwarded', turn: turnId, dispatchedAt: sql`clock_timestamp()` })
    .where(
      and(
        eq(input.session, sessionId),
        eq(input.status, 'queued'),
        inArray(input.kind, [...JOINS_RUNNING_TURN]),
        unlocked(),
      ),
    );
  // Also those bound before and not in the transcript yet: a look that was repeated may have lost its answer,
  // and the turn takes each id only once.
  const rows = await tx
    .select({ id: input.id })
    .from(input)
    .where(
      and(
        eq(input.turn, turnId),
        eq(input.status, 'forwarded'),
        isNull(input.message),
        inArray(input.kind, [...JOINS_RUNNING_TURN]),
      ),
    )
    .orderBy(asc(input.seq));
  return rows.map((row) => row.id);
}

function unlocked() {
  return or(isNull(input.editLockUntil), sql`${input.editLockUntil} < clock_timestamp()`);
}

/** Left-over steering first, then people, then wake-ups; first in first out in each. */
async function promote(tx: Tx, row: SessionRow, describe: DescribeTools): Promise<OpenTurn | null> {
  const [last] = await tx.select().from(turn).where(eq(turn.session, row.id)).orderBy(desc(turn.n)).limit(1);
  const wasStopped = last?.endReason === 'ABORTED' && last.endDecidedBy === 'user';
  const mayStart = wasStopped ? notInArray(input.kind, [...BACKGROUND]) : undefined;
  const [next] = await tx
    .select()
    .from(input)
    .where(and(eq(input.session, row.id), eq(input.status, 'queued'), unlocked(), mayStart))
    .orderBy(desc(input.isLeftOver), asc(input.class), asc(input.seq))
    .limit(1);
  if (!next) return null;
  const n = (last?.n ?? 0) + 1;
  const [pinned] = await tx.select().from(agent).where(eq(agent.hash, row.agent));
  const tools = await storeToolList(tx, describe(pinned?.definition.tools ?? []));
  const opened = {
    id: turnIdOf(row.id, n),
    session: row.id,
    n,
    baseHead: row.head,
    head: row.head,
    input: next.id,
    agent: row.agent,
    tools,
  };
  await tx.insert(turn).values(opened);
  await tx
    .update(input)
    .set({ status: 'forwarded', turn: opened.id, dispatchedAt: sql`clock_timestamp()` })
    .where(eq(input.id, next.id));
  const open = await describeOpen(tx, row, opened);
  await recordEvents(tx, row.id, [
    {
      key: `opened/${opened.id}`,
      turn: opened.id,
      event: { kind: 'turn.opened', layer: 'turn', n, input: next.id },
    },
  ]);
  return open;
}

async function storeToolList(tx: Tx, tools: readonly StoredTool[]): Promise<string> {
  const hash = contentHash(tools);
  await tx.insert(toolList).values({ hash, tools }).onConflictDoNothing();
  return hash;
}

async function describeOpen(
  tx: Tx,
  row: SessionRow,
  open: Pick<typeof turn.$inferSelect, 'id' | 'agent' | 'tools' | 'baseHead' | 'input'>,
): Promise<OpenTurn> {
  const [pinned] = await tx.select().from(agent).where(eq(agent.hash, open.agent));
  if (!pinned) throw new Error('the agent of an open turn is gone');
  return {
    turn: open.id,
    agent: open.agent,
    agentName: pinned.name,
    tools: open.tools,
    workspaceQueue: row.workspaceQueue,
    head: open.baseHead,
    input: open.input,
    limits: pinned.definition.limits,
    cancelAsked: (await tx.$count(cancel, eq(cancel.turn, open.id))) > 0,
  };
}

/** The driver came to rest: once for each last turn. */
async function idleEvents(tx: Tx, id: string): Promise<NewEvent[]> {
  const [last] = await tx.select().from(turn).where(eq(turn.session, id)).orderBy(desc(turn.n)).limit(1);
  if (!last) return [];
  return [
    {
      key: `idle/${last.id}`,
      turn: last.id,
      event: {
        kind: 'driver.ended',
        layer: 'driver',
        reason: 'queue_empty',
        detail: null,
        decidedBy: 'runtime',
        signal: 'queue_empty',
      },
    },
  ];
}
