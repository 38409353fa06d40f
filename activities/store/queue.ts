import { and, asc, desc, eq, inArray, isNull, sql } from 'drizzle-orm';
import { type AgentsCount, leased, NO_AGENTS, toolsAtDepth } from '../../workflows/core/agents.ts';
import { JOINS_RUNNING_TURN } from '../../workflows/core/inputs.ts';
import type { Limits } from '../../workflows/core/policy.ts';
import type { TurnRules } from '../../workflows/core/turn-rules.ts';
import type { CarriedCall } from '../../workflows/core/turn-state.ts';
import { turnIdOf } from '../../workflows/messages.ts';
import { originOf } from './continuation.ts';
import type { Db, Tx } from './database.ts';
import { type NewEvent, recordEvents } from './events.ts';
import { cancel, input, outbox, session, type StoredAgent, type StoredTool, toolList, turn } from './schema.ts';
import { carriedBy } from './carried.ts';
import { agentOf } from './definitions.ts';
import { goalOfTurn, limitsWith, rulesWith, toolsWith } from './goal-turns.ts';
import { contentHash } from './hash.ts';
import { insertCancel } from './cancels.ts';
import { agentOfSession, type AgentRow, leaseOfRow, parentCancel, runningAgents } from './sub-agents.ts';
import { reportRest, reportStart } from './session-reports.ts';
import { joining } from './joining.ts';
import { isUnlocked, waitsForNextTurn } from './queued.ts';
import { endsOpen, type ToRepair } from './repair.ts';
import { rulesOf, schemaFor } from './rules-of-turn.ts';
import { firstToScreen, isTypedAnswer, type Screening, type ToScreen, toScreen, UNSCREENED } from './screening.ts';
import { reportLateDenials } from './late-denials.ts';

export interface OpenTurn {
  readonly turn: string;
  readonly agent: string;
  readonly agentName: string;
  /** The submitter's number of it; null where there is none, or it may be more than a number. */
  readonly ticket: string | null;
  readonly tools: string;
  readonly workspaceQueue: string;
  readonly head: string;
  /** The promoted input, then whatever joins a turn and waited already. */
  readonly inputs: readonly string[];
  readonly rules: TurnRules;
  readonly limits: Limits;
  /** Somebody wanted it cancelled before its workflow could be told. */
  readonly cancelAsked: boolean;
  /** The call that a late yes allowed: it is made first. */
  readonly carried: CarriedCall | null;
  /** Set where sub-agents of the session run already. */
  readonly agents: AgentsCount | null;
}

/** What a session is to do next: its queue is the store's, the session workflow is the hand. */
export type Advance =
  | { readonly kind: 'start'; readonly turn: OpenTurn }
  | {
      readonly kind: 'running';
      readonly turn: string;
      readonly forward: readonly string[];
      /** Those of them that can't wait for the next safe point. */
      readonly urgent?: readonly string[];
    }
  | { readonly kind: 'idle' };

/** `stream`: where its events went; null for a session that the store does not know. */
export interface Advanced {
  readonly next: Advance | Before;
  readonly stream: string | null;
}

/** What has to be done before a turn can open or have an input. */
type Before = ToScreen | ToRepair | ToList;

/** The servers of tools are to be asked what they have now. */
interface ToList {
  readonly kind: 'list';
}

/** The model's view of the tools an agent names, as this worker has them; null as long as it has not asked for them. */
export type DescribeTools = (names: readonly string[], agents: readonly string[]) => readonly StoredTool[] | null;

type SessionRow = typeof session.$inferSelect;
type TurnRow = typeof turn.$inferSelect;

/**
 * Takes notice of what happened and says what is next; each call is one transaction that may be repeated.
 * `started` is the turn this run of the session workflow has started or adopted already.
 */
export async function advance(
  db: Db,
  id: string,
  started: string | null,
  describe: DescribeTools,
  screening: Screening = UNSCREENED,
): Promise<Advanced> {
  return await db.transaction(async (tx) => {
    const [row] = await tx.select().from(session).where(eq(session.id, id)).for('no key update');
    if (!row) return { next: { kind: 'idle' }, stream: null };
    return { next: await look(tx, { row, started, describe, screening }), stream: row.stream };
  });
}

interface Looking {
  readonly row: SessionRow;
  readonly started: string | null;
  readonly describe: DescribeTools;
  readonly screening: Screening;
}

async function look(tx: Tx, at: Looking): Promise<Advance | Before> {
  const { row, started, screening } = at;
  await acknowledge(tx, `session:${row.id}`);
  const [last] = await tx.select().from(turn).where(eq(turn.session, row.id)).orderBy(desc(turn.n)).limit(1);
  const open = last?.endedAt === null ? last : null;
  const unseen = open && (await firstToScreen(tx, row, open.id, screening));
  if (unseen) return unseen;
  if (open && open.id === started) {
    await bindJoining(tx, open.id, row.id, screening);
    const rows = await joining(tx, open.id);
    const urgent = rows.filter(({ kind }) => kind === 'send_now').map(idOf);
    const forward = rows.map(idOf);
    return { kind: 'running', turn: open.id, forward, ...(urgent.length > 0 ? { urgent } : {}) };
  }
  if (open) return { kind: 'start', turn: await describeOpen(tx, row, open, screening) };
  const promoted = await promote(tx, at, last);
  if (promoted) return 'kind' in promoted ? promoted : { kind: 'start', turn: promoted };
  if (last) await reportRest(tx, row.id, last.id, screening);
  if (last) await recordEvents(tx, row.id, idleEvents(last.id));
  return { kind: 'idle' };
}

async function acknowledge(tx: Tx, receiver: string): Promise<void> {
  await tx
    .update(outbox)
    .set({ acknowledgedAt: sql`clock_timestamp()` })
    .where(and(eq(outbox.receiver, receiver), isNull(outbox.acknowledgedAt)));
}

/** Inputs that need not wait for idle are bound to the turn. Returns those that this call has bound, in their order. */
async function bindJoining(tx: Tx, turnId: string, sessionId: string, screening: Screening): Promise<string[]> {
  const rows = await tx
    .update(input)
    .set({ status: 'forwarded', turn: turnId, dispatchedAt: sql`clock_timestamp()` })
    .where(
      and(
        eq(input.session, sessionId),
        eq(input.status, 'queued'),
        inArray(input.kind, [...JOINS_RUNNING_TURN]),
        isUnlocked,
      ),
    )
    .returning({ id: input.id, seq: input.seq, kind: input.kind });
  await reportLateDenials(tx, rows, screening);
  return rows.sort((a, b) => a.seq - b.seq).map((row) => row.id);
}

function idOf({ id }: { readonly id: string }): string {
  return id;
}

/** A late yes before the session goes on without it, left-over steering, people, wake-ups; first in first out in each. */
async function promote(tx: Tx, at: Looking, last: TurnRow | undefined): Promise<OpenTurn | Before | null> {
  const { row, describe, screening } = at;
  const own = await agentOfSession(tx, row.id, 'lock');
  // A sub-agent ends with its first turn.
  if (own?.endedAt) return null;
  const [found] = await tx
    .select({ row: input, isTyped: isTypedAnswer })
    .from(input)
    .where(and(eq(input.session, row.id), eq(input.status, 'queued'), isUnlocked, sql`not ${waitsForNextTurn}`))
    .orderBy(desc(isLateYes), desc(input.isLeftOver), asc(input.class), asc(input.seq))
    .limit(1);
  if (!found) return null;
  const { row: next } = found;
  const unseen = toScreen(found, row, null, screening) ?? (await firstToScreen(tx, row, null, screening));
  if (unseen) return unseen;
  if (!screening.beyondRepair?.has(row.head) && (await endsOpen(tx, row.head)))
    return { kind: 'repair', head: row.head };
  const n = (last?.n ?? 0) + 1;
  const pinned = await agentOf(tx, row.agent);
  const goal = await goalOfTurn(tx, row.id);
  const named = toolsWith(toolsAtDepth(row.id, pinned.tools), goal);
  const listed = describe(named, pinned.agents ?? []);
  if (listed === null) return { kind: 'list' };
  const tools = await storeToolList(tx, listed);
  if (own) await inheritPlan(tx, own);
  const origin = await originOf(tx, next);
  const opened = {
    id: turnIdOf(row.id, n),
    session: row.id,
    n,
    baseHead: row.head,
    head: row.head,
    input: next.id,
    origin,
    agent: row.agent,
    tools,
    outputSchema: await schemaFor(tx, origin, pinned),
  };
  await tx.insert(turn).values(opened);
  await tx
    .update(input)
    .set({ status: 'forwarded', turn: opened.id, dispatchedAt: sql`clock_timestamp()` })
    .where(eq(input.id, next.id));
  const carried = next.kind === 'call_back' ? await carriedBy(tx, opened) : null;
  await reportLateDenials(tx, [next], screening);
  const joined = await bindJoining(tx, opened.id, row.id, screening);
  await reportStart(tx, row.id, opened.id, last?.id ?? null, screening);
  await recordEvents(tx, row.id, [
    {
      key: `opened/${opened.id}`,
      turn: opened.id,
      event: { kind: 'turn.opened', layer: 'turn', n, input: next.id },
    },
    // What started it was stopped before it could begin.
    ...(own?.cancelledAt ? [await insertCancel(tx, parentCancel(own, opened.id))] : []),
  ]);
  return {
    ...(await described(tx, row, opened, pinned)),
    inputs: [next.id, ...joined],
    cancelAsked: own !== null && own.cancelledAt !== null,
    carried,
  };
}

/** The plan may have been set while it was started; from here on it is set on both. */
async function inheritPlan(tx: Tx, { session: id, parent }: AgentRow): Promise<void> {
  await tx.execute(sql`
    update pawl.session s set plan = true from pawl.session p where s.id = ${id} and p.id = ${parent} and p.plan and not s.plan`);
}

const isLateYes = sql`exists (select from pawl.approval a where a.input = ${input.id} and a.answer = 'approved')`;

async function storeToolList(tx: Tx, tools: readonly StoredTool[]): Promise<string> {
  const hash = contentHash(tools);
  await tx.insert(toolList).values({ hash, tools }).onConflictDoNothing();
  return hash;
}

/** A turn that is open and was not started by this run of the session workflow. */
async function describeOpen(tx: Tx, row: SessionRow, open: TurnRow, screening: Screening): Promise<OpenTurn> {
  await bindJoining(tx, open.id, row.id, screening);
  const joined = (await joining(tx, open.id)).map(idOf);
  return {
    ...(await described(tx, row, open, await agentOf(tx, open.agent))),
    inputs: [open.input, ...joined.filter((id) => id !== open.input)],
    cancelAsked: (await tx.$count(cancel, eq(cancel.turn, open.id))) > 0,
    carried: await carriedBy(tx, open),
  };
}

/** A title is content, which a history must not show. */
const TICKET_NUMBER = /^[\w.:#/@-]{1,100}$/;

async function described(
  tx: Tx,
  row: SessionRow,
  open: Pick<TurnRow, 'id' | 'agent' | 'tools' | 'baseHead' | 'outputSchema' | 'input'>,
  pinned: StoredAgent,
): Promise<Omit<OpenTurn, 'inputs' | 'cancelAsked' | 'carried'>> {
  const own = await agentOfSession(tx, row.id);
  return {
    turn: open.id,
    agent: open.agent,
    agentName: pinned.name,
    ticket: row.title !== null && TICKET_NUMBER.test(row.title) ? row.title : null,
    tools: open.tools,
    workspaceQueue: row.workspaceQueue,
    head: open.baseHead,
    rules: rulesWith(rulesOf(pinned, row, open.outputSchema !== null), await goalOfTurn(tx, row.id)),
    limits: await limitsWith(tx, own ? leased(pinned.limits, leaseOfRow(own)) : pinned.limits, open.input),
    agents: (await runningAgents(tx, row.id)) > 0 ? NO_AGENTS : null,
  };
}

/** The driver came to rest: once for each last turn. */
function idleEvents(last: string): NewEvent[] {
  const why = { reason: 'queue_empty', detail: null, decidedBy: 'runtime', signal: 'queue_empty' } as const;
  return [{ key: `idle/${last}`, turn: last, event: { kind: 'driver.ended', layer: 'driver', ...why } }];
}
