import { and, asc, eq, getTableColumns, inArray, isNull, sql } from 'drizzle-orm';
import { POLICY } from '../../workflows/core/policy.ts';
import { NO_USAGE, type SampleOutcome, type Usage } from '../../workflows/core/sample-outcome.ts';
import type { Db } from './database.ts';
import { type NewEvent, recordEvents } from './events.ts';
import { type Fence, FenceRefused, readTurn } from './fence.ts';
import { perDatabase } from './prepared.ts';
import { call, delta, effect, type UndoState, usage } from './schema.ts';
import { attemptDiscarded, streamEnded } from './stream-ended.ts';
import { type Link } from './transcript.ts';
import { commitTurn, isTold, type NewCall, type OpenedRequest, type TurnCommit } from './turn-commit.ts';
import { lostUsage } from './usage.ts';

const prepared = perDatabase((db) => ({
  results: db
    .select({
      ...getTableColumns(call),
      begun: sql<boolean>`coalesce(${effect.state} <> 'intended', false)
        or exists (select from pawl.sub_agent a where a.call = ${call.key})`,
      undo: effect.undo,
    })
    .from(call)
    .leftJoin(effect, eq(effect.key, call.key))
    .where(eq(call.assistant, sql.placeholder('assistant')))
    .orderBy(asc(call.ordinal))
    .prepare('results_of'),
}));

/** `begun`: the ledger has the effect as more than intended; `undo`: what it has of taking it back. */
export async function readResults(
  db: Db,
  assistant: string,
): Promise<(typeof call.$inferSelect & { readonly begun: boolean; readonly undo: UndoState | null })[]> {
  return await prepared(db).results.execute({ assistant });
}

export interface SampleOpening {
  readonly fence: Fence;
  readonly session: string;
  /** The sample's key, which every attempt of these bytes shares. */
  readonly sample: string;
  readonly attempt: string;
  readonly step: number;
  /** The request that is about to be sent; null where none is. */
  readonly request: OpenedRequest | null;
  /** The head that the request goes on from: on another one its reply would not be taken. */
  readonly base: string;
  readonly links: readonly Link[];
  readonly joined: TurnCommit['joined'];
  readonly events: readonly NewEvent[];
}

/** `O`: what is remembered under the sample's key. */
export type SampleOpened<O = SampleOutcome> =
  /** `lost`: how many attempts died before this one; `lostUsage`: what those spent that nobody was told of. */
  | { readonly kind: 'opened'; readonly lost: number; readonly lostUsage: Usage; readonly plan: boolean }
  | { readonly kind: 'answered'; readonly outcome: O }
  | { readonly kind: 'too_many_lost'; readonly lost: number };

/**
 * First commit of a sample: appends, and the usage row that counts as the worst case until it is closed.
 * An earlier attempt's answer is returned instead; attempts that died get their end first.
 */
export async function openSample<O = SampleOutcome>(db: Db, opening: SampleOpening): Promise<SampleOpened<O>> {
  const { fence, sample, attempt, request } = opening;
  let lost = 0;
  for (;;) {
    const committed = await commitTurn<O>(db, {
      ...NO_CHANGE,
      ...opening,
      newAttemptOf: sample,
      opens: request ? { attempt, ...request } : null,
    });
    switch (committed.kind) {
      case 'committed':
        return {
          kind: 'opened',
          lost,
          lostUsage: lost > 0 ? await lostUsage(db, sample) : NO_USAGE,
          plan: committed.plan,
        };
      case 'done_before':
        return { kind: 'answered', outcome: committed.result };
      case 'attempts_open':
        lost = await closeLostAttempts(db, { turn: fence.turn, session: opening.session, sample, mine: attempt });
        if (lost >= POLICY.lostAttempts.ofOneSample) return { kind: 'too_many_lost', lost };
        break;
      case 'refused':
        throw await refusal(db, fence);
    }
  }
}

export const NO_CHANGE: Omit<TurnCommit, 'fence' | 'step' | 'events'> = {
  keyed: null,
  newAttemptOf: null,
  base: null,
  links: [],
  joined: [],
  calls: [],
  opens: null,
  closes: null,
};

/** Why a commit was refused. */
export async function refusal(db: Db, fence: Fence): Promise<Error> {
  try {
    await readTurn(db, fence);
  } catch (error) {
    if (error instanceof FenceRefused) return error;
    throw error;
  }
  return new Error('a commit was refused: the turn has another head, or it would be accepted now');
}

export interface SampleClosing<O extends { readonly kind: string } = SampleOutcome> {
  readonly fence: Fence;
  readonly session: string;
  readonly attempt: string;
  readonly sample: string;
  readonly step: number;
  readonly outcome: O;
  /** Whether the outcome ends the attempts of this request, so that it is kept under the sample's key. */
  readonly isFinal: boolean;
  readonly usage: Usage;
  /** Whether chunks of its text may be in the store. */
  readonly wasShown: boolean;
  readonly reply: Link | null;
  readonly calls: readonly NewCall[];
  readonly events: readonly NewEvent[];
}

/** Second commit: reply, calls, usage and stream end. Whoever comes second gets the first one's outcome. */
export async function closeSample<O extends { readonly kind: string } = SampleOutcome>(
  db: Db,
  closing: SampleClosing<O>,
): Promise<O> {
  const { outcome, reply, attempt, usage: used } = closing;
  const committed = await commitTurn<O>(db, {
    ...NO_CHANGE,
    fence: closing.fence,
    step: closing.step,
    keyed: closing.isFinal ? { key: closing.sample, result: outcome } : null,
    base: reply?.parent ?? null,
    links: reply ? [reply] : [],
    calls: reply ? closing.calls : [],
    closes: { attempt, outcome: outcome.kind, wasted: reply === null, usage: used, wasShown: closing.wasShown },
    events: closing.events,
  });
  if (committed.kind === 'committed') return outcome;
  await closeDiscarded(db, closing);
  if (committed.kind === 'done_before') return committed.result;
  throw await refusal(db, closing.fence);
}

/** The turn moved on without this attempt: what it cost is written down all the same. */
async function closeDiscarded(db: Db, closing: SampleClosing<{ readonly kind: string }>): Promise<void> {
  const { inputTokens, cachedTokens, outputTokens, reasoningTokens, complete, microUsd } = closing.usage;
  const spent = { inputTokens, cachedTokens, outputTokens, reasoningTokens, costMicroUsd: microUsd };
  const told = isTold(closing.usage) ? spent : {};
  await db.transaction(async (tx) => {
    await tx
      .update(usage)
      .set({ ...told, outcome: closing.outcome.kind, complete, wasted: true, closedAt: sql`clock_timestamp()` })
      .where(eq(usage.attempt, closing.attempt));
    await tx.delete(delta).where(eq(delta.attempt, closing.attempt));
    await recordEvents(tx, closing.session, [
      streamEnded(closing, 'discarded', null, null),
      ...(closing.wasShown ? [attemptDiscarded(closing)] : []),
    ]);
  });
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
      await tx.delete(delta).where(
        inArray(
          delta.attempt,
          lost.map((row) => row.attempt),
        ),
      );
      await recordEvents(
        tx,
        at.session,
        lost.flatMap((row) => lostEvents(at, row)),
      );
    });
  }
  return await db.$count(usage, and(eq(usage.sample, at.sample), eq(usage.outcome, 'lost')));
}

function lostEvents(
  at: { readonly turn: string; readonly sample: string; readonly mine: string | null },
  row: LostAttempt,
): NewEvent[] {
  const { turn: turnId } = at;
  return [
    {
      key: `lost/${row.attempt}`,
      turn: turnId,
      event: { kind: 'attempt.lost', layer: 'stream', key: at.sample, attempt: row.attempt },
    },
    streamEnded(
      { attempt: row.attempt, step: row.step, usage: UNKNOWN_USAGE, fence: { turn: turnId } },
      'lost',
      null,
      null,
    ),
    attemptDiscarded({ ...row, fence: { turn: turnId } }),
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

export const UNKNOWN_USAGE: Usage = { ...NO_USAGE, complete: false };

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
  await db
    .insert(delta)
    .values(chunks.map((chunk) => ({ ...at, ...chunk })))
    .onConflictDoNothing();
}

export async function dropDeltas(db: Db, attempt: string): Promise<void> {
  await db.delete(delta).where(eq(delta.attempt, attempt));
}
