import { and, asc, eq, sql } from 'drizzle-orm';
import { cascadeOf } from '../../workflows/core/agents.ts';
import type { Decider, End, Signal } from '../../workflows/core/ends.ts';
import { NO_USAGE, type Usage } from '../../workflows/core/sample-outcome.ts';
import type { Message } from '../../workflows/core/transcript.ts';
import { type HookEvent, STOP_EVENTS } from '../gate/hook-types.ts';
import { queueContinuation } from './continuation.ts';
import { endAgent } from './agent-ends.ts';
import { answerCancels, type CancelRow } from './answer-cancels.ts';
import type { Db, Tx } from './database.ts';
import { type NewEvent, recordEvents } from './events.ts';
import type { FencedTurn } from './fence.ts';
import { tellGoal } from './goal-turns.ts';
import { storableDeep } from './hash.ts';
import { settleInputs } from './settle-inputs.ts';
import { storeReports } from './reports.ts';
import { cancel, outbox, session, type StructuredOutput, turn } from './schema.ts';
import { agentsOf, markCancelled } from './sub-agents.ts';
import { chainOn, type Link, writeLinks } from './transcript.ts';
import { usageOfTurn } from './usage.ts';

/** Who stood behind an end, where the engine or a row can tell. */
export interface EndAuthor {
  readonly by: string | null;
  readonly why: string | null;
}

export interface TurnEnding {
  readonly end: End;
  readonly step: number;
  /** Null: nobody could tell. */
  readonly runningMs: number | null;
  readonly recordedBy: 'turn' | 'recovery';
  /** What the engine says of it; a cancel row comes before this. */
  readonly author: EndAuthor;
  /** What the transcript is still owed, behind the head that the caller saw. */
  readonly owed: readonly Message[];
  /** The batch that the end comes after, where nothing has told of its end yet. */
  readonly batchEnd: NewEvent | null;
  readonly chain: readonly Link[];
  /** The answer that had to fit a schema. */
  readonly structuredOutput?: StructuredOutput | null;
  /** Whether the tools that the agent requires have succeeded. */
  readonly contract?: 'met' | 'unmet' | null;
  readonly tokensOf: (message: Message) => number;
  /** What the model is told where the job goes on by itself. */
  readonly directive?: string | null;
  /** What the agent said last, for whoever started it. */
  readonly lastText?: string | null;
  /** Whether hooks are to be told of an event. */
  readonly reports?: (event: HookEvent) => boolean;
}

/**
 * The one transaction that ends a turn: what is owed goes to the transcript, the end row is written, the
 * session's head moves, inputs are consumed or put back, cancels are answered, the receivers get a row each, and
 * what the job goes on with by itself is queued.
 * `lock` holds the turn and throws if it may not be ended by this caller.
 */
export async function writeEnd(
  db: Db,
  ending: TurnEnding,
  lock: (tx: Tx) => Promise<FencedTurn>,
): Promise<{ readonly goal: string | null }> {
  return await db.transaction(async (tx) => {
    const owner = await lock(tx);
    const cancels = await tx.select().from(cancel).where(eq(cancel.turn, owner.id)).orderBy(asc(cancel.seq));
    const { end, author } = storableDeep(withCancel(ending, cancels));
    await stopAgents(tx, owner, end, author);
    const owed = await appendOwed(tx, owner, ending);
    const head = owed[owed.length - 1]?.hash ?? owner.head;
    const usage = await writeEndRow(tx, owner, ending, end, author, head);
    const headKept = await moveSessionHead(tx, owner, head);
    const dropped = await settleInputs(tx, owner, head, end, author);
    const answers = await answerCancels(tx, cancels, end);
    const goal = await tellGoal(tx, owner.session, owner.id);
    const continued = await queueContinuation(tx, owner, {
      end,
      cancelAsked: cancels.length > 0,
      // With a goal that is open it is the goal that goes on.
      directive: goal === null ? (ending.directive ?? null) : null,
    });
    await tx
      .insert(outbox)
      .values({ receiver: `session:${owner.session}`, event: `ended/${owner.id}`, body: { turn: owner.id } })
      .onConflictDoNothing();
    await reportStop(tx, owner, end, ending.reports);
    const ofAgent = await endAgent(tx, {
      session: owner.session,
      turn: owner.id,
      end,
      by: author.by,
      usage,
      structuredOutput: ending.structuredOutput ?? null,
      lastText: ending.lastText ?? null,
      reports: ending.reports,
    });
    await recordEvents(tx, owner.session, [
      ...dropped,
      ...answers,
      ...(ending.batchEnd ? [ending.batchEnd] : []),
      ...(headKept ? [headKept] : []),
      endEvent(owner, ending, { end, author, head, usage }),
      ...continued,
      ...ofAgent,
    ]);
    return { goal };
  });
}

/** Those that end with this turn are marked in its transaction, before any session's row is taken. */
async function stopAgents(tx: Tx, owner: FencedTurn, end: End, { by, why }: EndAuthor): Promise<void> {
  const which = agentsOf(owner.session, cascadeOf(end, owner.session));
  await markCancelled(tx, which, { by: by ?? `turn ${owner.id}`, why, decidedBy: end.decidedBy });
}

async function appendOwed(tx: Tx, owner: FencedTurn, ending: TurnEnding): Promise<readonly Link[]> {
  const last = ending.chain[ending.chain.length - 1];
  if (last && last.hash !== owner.head) throw new HeadMoved(owner.head);
  const links = chainOn({ hash: owner.head, depth: last?.depth ?? 0 }, ending.owed, ending.tokensOf);
  await writeLinks(tx, links);
  return links;
}

/** One of the three kinds of stop, once a turn: it stands or falls with the end. */
async function reportStop(tx: Tx, owner: FencedTurn, { reason }: End, reports: TurnEnding['reports']): Promise<void> {
  const event = STOP_EVENTS[reason];
  if (!reports?.(event)) return;
  await storeReports(tx, [{ id: `stop/${owner.id}`, body: { event, session: owner.session, turn: owner.id } }]);
}

/** The chain was read before the lock and a commit came between: read again. */
export class HeadMoved extends Error {
  readonly head: string;

  constructor(head: string) {
    super('the head moved');
    this.name = 'HeadMoved';
    this.head = head;
  }
}

/** The first cancel row is the signal of an end by cancel; of the engine alone nothing but an identity is known. */
function withCancel(ending: TurnEnding, cancels: readonly CancelRow[]): { end: End; author: EndAuthor } {
  const first = cancels[0];
  if (ending.end.signal.name !== 'cancel_request' || !first) return { end: ending.end, author: ending.author };
  const signal = { name: 'cancel_request', id: first.id } as const;
  const { phase } = ending.end;
  return { end: cancelledEnd(first, signal, phase), author: { by: first.by, why: first.why } };
}

function cancelledEnd(row: CancelRow, signal: End['signal'], phase: End['phase']): End {
  switch (row.detail) {
    case 'scheduler_cancel':
      return { reason: 'ABORTED', detail: 'scheduler_cancel', decidedBy: 'scheduler', signal, phase };
    case 'parent_cancelled':
      return { reason: 'ABORTED', detail: 'parent_cancelled', decidedBy: row.decidedBy, signal, phase };
    default:
      return { reason: 'ABORTED', detail: 'user_cancel', decidedBy: 'user', signal, phase };
  }
}

async function writeEndRow(
  tx: Tx,
  owner: FencedTurn,
  ending: TurnEnding,
  end: End,
  author: EndAuthor,
  head: string,
): Promise<Usage> {
  const [row] = await tx
    .update(turn)
    .set({
      head,
      endedAt: sql`clock_timestamp()`,
      endReason: end.reason,
      endDetail: end.detail,
      endDecidedBy: end.decidedBy,
      endSignal: end.signal,
      endPhase: end.phase,
      endStep: ending.step,
      endRunningMs: ending.runningMs,
      endUsage: usageOfTurn(owner.id),
      endStructuredOutput: ending.structuredOutput ? storableDeep(ending.structuredOutput) : null,
      endContract: ending.contract ?? null,
      endResumeAt: 'resumeAtMs' in end ? new Date(end.resumeAtMs) : null,
      endBy: author.by,
      endWhy: author.why,
      recordedBy: ending.recordedBy,
    })
    .where(eq(turn.id, owner.id))
    .returning({ usage: turn.endUsage });
  return row?.usage ?? NO_USAGE;
}

/** Should somebody have moved the session's head meanwhile, it stays, and an event says so. */
async function moveSessionHead(tx: Tx, owner: FencedTurn, head: string): Promise<NewEvent | null> {
  const moved = await tx
    .update(session)
    .set({ head })
    .where(and(eq(session.id, owner.session), eq(session.head, owner.baseHead)))
    .returning({ id: session.id });
  if (moved.length > 0 || head === owner.baseHead) return null;
  return { key: `head/${owner.id}`, turn: owner.id, event: { kind: 'head.kept', layer: 'turn', head } };
}

interface WrittenEnd {
  readonly end: End;
  readonly author: EndAuthor;
  readonly head: string;
  readonly usage: Usage;
}

function endEvent(owner: FencedTurn, ending: TurnEnding, { end, author, head, usage }: WrittenEnd): NewEvent {
  return {
    key: `ended/${owner.id}`,
    turn: owner.id,
    event: {
      kind: 'turn.ended',
      layer: 'turn',
      reason: end.reason,
      detail: end.detail,
      decidedBy: end.decidedBy as Decider,
      signal: end.signal.name,
      evidence: withoutText(end.signal),
      phase: end.phase,
      step: ending.step,
      usage,
      by: author.by,
      why: author.why,
      recordedBy: ending.recordedBy,
      head,
    },
  };
}

/** Events hold counts and codes; the text stays in the end row. */
function withoutText(signal: Signal): Signal {
  return signal.name === 'open_todos' ? { name: signal.name, count: signal.count } : signal;
}
