import { and, eq, inArray, isNotNull, isNull, sql } from 'drizzle-orm';
import type { EndDetail } from '../../workflows/core/ends.ts';
import type { Db, Tx } from './database.ts';
import { type NewEvent, recordEvents } from './events.ts';
import { type Fence, lockTurn } from './fence.ts';
import { sha256, storable } from './hash.ts';
import { insertInput } from './intake.ts';
import { answeredEvent, asksAfterEnd, insertQuestion, writeAnswer } from './approvals.ts';
import { approval, type ApprovalAnswer, call, effect, type OutcomeAnswer, turn } from './schema.ts';
import { isOfAgent } from './sub-agents.ts';

export function outcomeAnswer(answer: ApprovalAnswer): OutcomeAnswer | null {
  return answer === 'happened' || answer === 'absent' || answer === 'again' ? answer : null;
}

/** One question for each attempt that nobody knows about: what is sent again may be asked about again. */
function questionId(callKey: string, attempt: string): string {
  return `out_${sha256('outcome', callKey, attempt).slice(0, 32)}`;
}

export interface LostAttempt {
  readonly turn: string;
  readonly session: string;
  readonly call: { readonly key: string; readonly tool: string; readonly arguments: string };
  readonly attempt: string;
}

/**
 * Marks an attempt as unknown and asks a person about it. `expiryMs` is how long the turn waits; 0: it ends
 * over it, and the question stays. False: that attempt does not hold the effect any more.
 */
export async function askOutcome(db: Db, fence: Fence, lost: LostAttempt, expiryMs: number): Promise<boolean> {
  return await db.transaction(async (tx) => {
    await lockTurn(tx, fence);
    const held = await tx
      .update(effect)
      .set({ state: 'unknown' })
      .where(
        and(
          eq(effect.key, lost.call.key),
          eq(effect.attempt, lost.attempt),
          inArray(effect.state, ['started', 'unknown']),
        ),
      )
      .returning({ key: effect.key });
    if (held.length > 0) await openQuestion(tx, lost, expiryMs);
    return held.length > 0;
  });
}

async function openQuestion(tx: Tx, { turn: turnId, session, call: of, attempt }: LostAttempt, expiryMs: number) {
  const id = questionId(of.key, attempt);
  const asked = { kind: 'outcome', tool: of.tool, subject: null, arguments: of.arguments, onExpiry: 'end' } as const;
  const row = await insertQuestion(tx, { id, turn: turnId, call: of.key, asked, expiryMs });
  const expiresAt = expiryMs === 0 ? null : row.expiresAt.toISOString();
  await recordEvents(tx, session, [
    {
      key: `asked/${id}`,
      turn: turnId,
      event: { kind: 'effect.asked', layer: 'batch', approval: id, key: of.key, tool: of.tool, attempt, expiresAt },
    },
  ]);
}

/** How the question about an attempt stands. */
export type OutcomeLook =
  | { readonly kind: 'waiting'; readonly approval: string; readonly untilMs: number }
  | { readonly kind: 'unanswered'; readonly approval: string }
  | {
      readonly kind: 'answered';
      readonly approval: string;
      readonly answer: OutcomeAnswer;
      readonly by: string;
      readonly note: string | null;
    };

/** Looks for the person's word on an attempt, by the database's clock; an answer counts as heard. Null: nobody was asked. */
export async function lookAtOutcome(db: Db, callKey: string, attempt: string): Promise<OutcomeLook | null> {
  return await db.transaction(async (tx) => {
    const id = questionId(callKey, attempt);
    const [found] = await tx
      .select({ row: approval, expired: sql<boolean>`${approval.expiresAt} <= clock_timestamp()` })
      .from(approval)
      .where(eq(approval.id, id))
      .for('no key update');
    if (!found) return null;
    const { row, expired } = found;
    const answer = row.answer && outcomeAnswer(row.answer);
    if (!answer && expired) return { kind: 'unanswered', approval: id };
    if (!answer) return { kind: 'waiting', approval: id, untilMs: row.expiresAt.getTime() };
    await tx.update(approval).set({ settledAt: sql`clock_timestamp()` }).where(eq(approval.id, id));
    return { kind: 'answered', approval: id, answer, by: row.answeredBy ?? '', note: row.note };
  });
}

/** A question about an outcome, locked with its turn and its session. */
interface AskedOutcome {
  readonly id: string;
  readonly call: string;
  readonly turn: string;
  readonly session: string;
  readonly isExpired: boolean;
  /** How its turn ended; null while it has not. */
  readonly endDetail: EndDetail | null;
}

interface GivenOutcome {
  readonly answer: OutcomeAnswer;
  readonly by: string;
  /** What the person adds. */
  readonly note: string | null;
  /** Id of the input that the answer becomes, where its turn has ended. */
  readonly input: string;
}

/** `later`: its turn has ended, and the session is to go on. */
export type OutcomeTaken =
  | { readonly kind: 'taken' }
  | { readonly kind: 'later' }
  | { readonly kind: 'stale'; readonly why: 'expired' | 'turn_ended' | 'settled' };

/** Records what a person says of an outcome. The turn draws the conclusion; where it has ended, this does. */
export async function answerOutcome(tx: Tx, asked: AskedOutcome, given: GivenOutcome): Promise<OutcomeTaken> {
  const { endDetail } = asked;
  const isAsked = and(eq(turn.id, asked.turn), asksAfterEnd());
  if (endDetail && (await tx.$count(turn, isAsked)) === 0) return { kind: 'stale', why: 'turn_ended' };
  const [row] = await tx.select().from(effect).where(eq(effect.key, asked.call)).for('no key update');
  const { attempt = null, state } = row ?? {};
  if (attempt === null || state !== 'unknown' || questionId(asked.call, attempt) !== asked.id) {
    return { kind: 'stale', why: 'settled' };
  }
  if (!endDetail && asked.isExpired) return { kind: 'stale', why: 'expired' };
  await writeAnswer(tx, asked.id, given, {
    note: given.note === null ? null : storable(given.note),
    ...(endDetail && { settledAt: sql`clock_timestamp()` }),
  });
  const answered = answeredEvent(asked.id, asked.call, asked.turn, given.answer, given.by);
  if (!endDetail) {
    await recordEvents(tx, asked.session, [answered]);
    return { kind: 'taken' };
  }
  const as = AFTER_END[given.answer];
  await settleAfterEnd(tx, asked, given);
  await recordEvents(tx, asked.session, [answered, settledByPerson({ ...asked, attempt }, as, given.by)]);
  return { kind: 'later' };
}

/** The ledger learns it, and the session goes on with an input that tells the model. */
async function settleAfterEnd(tx: Tx, asked: AskedOutcome, { answer, by, note, input }: GivenOutcome): Promise<void> {
  await tx
    .update(effect)
    .set({ state: AFTER_END[answer], settledAt: sql`clock_timestamp()` })
    .where(eq(effect.key, asked.call));
  // A sub-agent hears nothing more; whoever started it has gone on with what was known.
  if (isOfAgent(asked.session)) return;
  await insertInput(tx, { id: input, session: asked.session, kind: 'call_back', text: note ?? '', sender: by });
  await tx.update(approval).set({ input }).where(eq(approval.id, asked.id));
}

const AFTER_END = { happened: 'settled_done', absent: 'settled_absent', again: 'abandoned' } as const;

export function settledByPerson(
  at: { readonly call: string; readonly turn: string; readonly attempt: string },
  as: 'settled_done' | 'settled_absent' | 'abandoned',
  who: string,
): NewEvent {
  return {
    key: `settled/${at.attempt}/person`,
    turn: at.turn,
    event: { kind: 'effect.settled', layer: 'batch', key: at.call, as, by: 'person', who },
  };
}

/** The call came back while a person was asked: its questions are over. */
export async function closeQuestions(db: Db, callKey: string): Promise<void> {
  await db
    .update(approval)
    .set({ settledAt: sql`clock_timestamp()` })
    .where(and(eq(approval.call, callKey), isNull(approval.settledAt), sql`${approval.asked}->>'kind' = 'outcome'`));
}

/** Asks about what ended turns left unknown without asking, so that a person finds it. */
export async function askAfterEnds(db: Db, atMost: number): Promise<void> {
  const rows = await db
    .select({ effect, call, session: turn.session })
    .from(effect)
    .innerJoin(call, eq(call.key, effect.key))
    .innerJoin(turn, eq(turn.id, effect.turn))
    .where(
      and(
        eq(effect.state, 'unknown'),
        isNotNull(effect.attempt),
        asksAfterEnd(),
        sql`not exists (select from pawl.approval a where a.call = ${effect.key}
          and a.asked->>'kind' = 'outcome' and a.answer is null)`,
      ),
    )
    .limit(atMost);
  for (const { effect: row, call: of, session } of rows) {
    const lost = { turn: row.turn, session, call: of, attempt: row.attempt ?? '' };
    await db.transaction((tx) => openQuestion(tx, lost, 0));
  }
}
