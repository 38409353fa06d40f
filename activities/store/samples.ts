import { and, asc, eq, inArray, isNull, sql } from 'drizzle-orm';
import type { StreamEnd } from '../../workflows/core/journal.ts';
import type { ProviderFailure, SampleOutcome, Usage } from '../../workflows/core/sample-outcome.ts';
import type { Effect } from '../../workflows/core/tools.ts';
import type { Db, Tx } from './database.ts';
import { type NewEvent, recordEvents } from './events.ts';
import { type Fence, FenceRefused, type FencedTurn, lockTurn } from './fence.ts';
import { call, commit, delta, effect, input, turn, usage } from './schema.ts';
import { type Link, writeLinks } from './transcript.ts';

/** What was committed under this key, if anything: attempt 2 finds what attempt 1 did. */
export async function findCommit<T>(db: Db | Tx, key: string): Promise<T | null> {
  const [row] = await db.select({ result: commit.result }).from(commit).where(eq(commit.key, key));
  return row ? (row.result as T) : null;
}

/** Inputs in the order given, with those left out that are on a chain already. */
export async function readInputs(db: Db, ids: readonly string[]): Promise<(typeof input.$inferSelect)[]> {
  if (ids.length === 0) return [];
  const rows = await db.select().from(input).where(inArray(input.id, [...ids]));
  return ids.flatMap((id) => rows.filter((row) => row.id === id));
}

export async function readResults(db: Db, assistant: string): Promise<(typeof call.$inferSelect)[]> {
  return await db.select().from(call).where(eq(call.assistant, assistant)).orderBy(asc(call.ordinal));
}

export interface SampleOpening {
  readonly fence: Fence;
  readonly sample: string;
  /** The request that is about to be sent; null where none is. */
  readonly usage: {
    readonly attempt: string;
    readonly step: number;
    readonly model: string;
    readonly outputCapTokens: number;
  } | null;
  readonly links: readonly Link[];
  /** Input id → hash of the message it became. */
  readonly joined: readonly { readonly input: string; readonly message: string }[];
  readonly events: readonly NewEvent[];
}

/** First commit of a sample: appends, and the usage row that counts as the worst case until it is closed. */
export async function openSample(db: Db, opening: SampleOpening): Promise<FencedTurn> {
  return await db.transaction(async (tx) => {
    const owner = await lockTurn(tx, opening.fence);
    await appendLinks(tx, owner, opening.links);
    for (const { input: id, message } of opening.joined) {
      await tx.update(input).set({ message }).where(eq(input.id, id));
    }
    if (opening.usage) {
      await tx
        .insert(usage)
        .values({ ...opening.usage, sample: opening.sample, session: owner.session, turn: owner.id });
    }
    await recordEvents(tx, owner.session, opening.events);
    return owner;
  });
}

/** Puts links on the turn's chain; the fence must be held. */
export async function appendLinks(tx: Tx, owner: FencedTurn, links: readonly Link[]): Promise<void> {
  const last = links[links.length - 1];
  if (!last) return;
  await writeLinks(tx, links);
  await tx.update(turn).set({ head: last.hash }).where(eq(turn.id, owner.id));
}

export interface NewCall {
  readonly key: string;
  readonly ordinal: number;
  readonly providerCallId: string;
  readonly tool: string;
  readonly effect: Effect;
  readonly arguments: string;
  readonly argumentsHash: string;
  /** Set where the call is answered without running: bad arguments, an unknown tool, cut off. */
  readonly answer: { readonly text: string; readonly note: string } | null;
}

export interface SampleClosing {
  readonly fence: Fence;
  readonly session: string;
  readonly attempt: string;
  readonly sample: string;
  readonly step: number;
  readonly outcome: SampleOutcome;
  /** Whether the outcome ends the attempts of this request, so that it is kept under the sample's key. */
  readonly isFinal: boolean;
  readonly usage: Usage;
  readonly reply: Link | null;
  readonly calls: readonly NewCall[];
  readonly events: readonly NewEvent[];
}

/** Second commit: reply, calls, usage and stream end. Whoever comes second gets the first one's outcome. */
export async function closeSample(db: Db, closing: SampleClosing): Promise<SampleOutcome> {
  try {
    return await db.transaction((tx) => commitOutcome(tx, closing));
  } catch (error) {
    if (error instanceof FenceRefused) await closeDiscarded(db, closing);
    throw error;
  }
}

async function commitOutcome(tx: Tx, closing: SampleClosing): Promise<SampleOutcome> {
  const owner = await lockTurn(tx, closing.fence);
  if (closing.isFinal) {
    const winner = await claim(tx, closing);
    if (winner) {
      await closeUsage(tx, closing, true);
      await recordEvents(tx, owner.session, discardedEvents(closing));
      return winner;
    }
  }
  if (closing.reply) {
    await appendLinks(tx, owner, [closing.reply]);
    await insertCalls(tx, owner.id, closing.reply.hash, closing.step, closing.calls);
  }
  await closeUsage(tx, closing, closing.reply === null);
  await recordEvents(tx, owner.session, closing.events);
  return closing.outcome;
}

async function claim(tx: Tx, closing: SampleClosing): Promise<SampleOutcome | null> {
  const mine = await tx
    .insert(commit)
    .values({ key: closing.sample, turn: closing.fence.turn, run: closing.fence.run, result: closing.outcome })
    .onConflictDoNothing()
    .returning({ key: commit.key });
  return mine.length > 0 ? null : await findCommit<SampleOutcome>(tx, closing.sample);
}

async function insertCalls(
  tx: Tx,
  turnId: string,
  assistant: string,
  step: number,
  calls: readonly NewCall[],
): Promise<void> {
  if (calls.length === 0) return;
  await tx
    .insert(call)
    .values(
      calls.map(({ answer, ...row }) => ({
        ...row,
        turn: turnId,
        assistant,
        step,
        ...(answer ? { status: 'error' as const, result: answer.text, note: answer.note, finishedAt: new Date() } : {}),
      })),
    )
    .onConflictDoNothing();
  const acting = calls.filter((each) => each.effect !== 'none' && !each.answer);
  if (acting.length === 0) return;
  await tx
    .insert(effect)
    .values(
      acting.map((each) => ({
        key: each.key,
        turn: turnId,
        tool: each.tool,
        effect: each.effect,
        policyVersion: 1,
        argumentsHash: each.argumentsHash,
        state: 'intended' as const,
      })),
    )
    .onConflictDoNothing();
}

async function closeUsage(tx: Tx | Db, closing: SampleClosing, wasted: boolean): Promise<void> {
  const { inputTokens, cachedTokens, outputTokens, reasoningTokens, complete } = closing.usage;
  await tx
    .update(usage)
    .set({
      outcome: closing.outcome.kind,
      ...(complete ? { inputTokens, cachedTokens, outputTokens, reasoningTokens } : {}),
      complete,
      wasted,
      closedAt: sql`clock_timestamp()`,
    })
    .where(eq(usage.attempt, closing.attempt));
}

/** The turn moved on without this attempt: what it cost is written down all the same. */
async function closeDiscarded(db: Db, closing: SampleClosing): Promise<void> {
  await db.transaction(async (tx) => {
    await closeUsage(tx, closing, true);
    await recordEvents(tx, closing.session, discardedEvents(closing));
  });
}

function discardedEvents(closing: SampleClosing): NewEvent[] {
  return [streamEnded(closing, 'discarded', null, null)];
}

/** The stream layer's end row. */
export function streamEnded(
  at: Pick<SampleClosing, 'attempt' | 'step' | 'usage'> & { readonly fence: Pick<Fence, 'turn'> },
  reason: StreamEnd,
  failure: ProviderFailure['kind'] | null,
  message: string | null,
): NewEvent {
  const byModel = reason === 'stop' || reason === 'tool_calls' || reason === 'content_filter';
  return {
    key: `stream/${at.attempt}`,
    turn: at.fence.turn,
    event: {
      kind: 'stream.ended',
      layer: 'stream',
      step: at.step,
      attempt: at.attempt,
      reason,
      detail: failure,
      decidedBy: byModel ? 'model' : reason === 'cancelled' ? 'user' : 'runtime',
      signal: failure ?? reason,
      failure,
      message,
      usage: at.usage,
    },
  };
}

export interface LostAttempt {
  readonly attempt: string;
  readonly step: number;
}

/** Closes the rows of attempts that died with their worker, writes their ends, and counts all that were lost. */
export async function closeLostAttempts(
  db: Db,
  at: { readonly turn: string; readonly session: string; readonly sample: string; readonly mine: string | null },
): Promise<number> {
  const open = and(eq(usage.sample, at.sample), isNull(usage.closedAt));
  const lost = await db.select({ attempt: usage.attempt, step: usage.step }).from(usage).where(open);
  if (lost.length > 0) {
    await db.transaction(async (tx) => {
      await tx.update(usage).set({ outcome: 'lost', closedAt: sql`clock_timestamp()`, wasted: true }).where(open);
      await tx.delete(delta).where(inArray(delta.attempt, lost.map((row) => row.attempt)));
      await recordEvents(tx, at.session, lost.flatMap((row) => lostEvents(at, row)));
    });
  }
  return await db.$count(usage, and(eq(usage.sample, at.sample), eq(usage.outcome, 'lost')));
}

function lostEvents(at: { readonly turn: string; readonly sample: string; readonly mine: string | null }, row: LostAttempt): NewEvent[] {
  const { turn: turnId } = at;
  return [
    {
      key: `lost/${row.attempt}`,
      turn: turnId,
      event: { kind: 'attempt.lost', layer: 'stream', key: at.sample, attempt: row.attempt },
    },
    streamEnded({ attempt: row.attempt, step: row.step, usage: UNKNOWN_USAGE, fence: { turn: turnId } }, 'lost', null, null),
    {
      key: `discarded/${row.attempt}`,
      turn: turnId,
      event: { kind: 'attempt.discarded', layer: 'stream', step: row.step, attempt: row.attempt },
    },
    ...(at.mine === null ? [] : [resumed(at.mine, turnId, at.sample)]),
  ];
}

function resumed(attempt: string, turnId: string, sample: string): NewEvent {
  return {
    key: `resumed/${attempt}`,
    turn: turnId,
    event: { kind: 'attempt.resumed', layer: 'stream', key: sample, attempt },
  };
}

export const UNKNOWN_USAGE: Usage = {
  inputTokens: 0,
  cachedTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  complete: false,
};

export interface DeltaChunk {
  readonly n: number;
  readonly channel: 'text' | 'reasoning';
  readonly chunk: string;
}

export async function writeDeltas(
  db: Db,
  at: { readonly stream: string; readonly turn: string; readonly step: number; readonly attempt: string },
  chunks: readonly DeltaChunk[],
): Promise<void> {
  await db.insert(delta).values(chunks.map((chunk) => ({ ...at, ...chunk }))).onConflictDoNothing();
}

export async function dropDeltas(db: Db, attempt: string): Promise<void> {
  await db.delete(delta).where(eq(delta.attempt, attempt));
}
