import { sql } from 'drizzle-orm';
import type { EndDetail, EndReason } from '../../workflows/core/ends.ts';
import type { InputKind } from '../../workflows/core/inputs.ts';
import { type AnswerPlace, placeOfAnswer } from '../../workflows/core/waits.ts';
import { answeredEvent, deniedEvent, refuseCalls, writeAnswer } from './approvals.ts';
import type { Db, Tx } from './database.ts';
import { recordEvents } from './events.ts';
import { storable } from './hash.ts';
import { newId } from './ids.ts';
import { insertInput } from './intake.ts';
import { answerOutcome, outcomeAnswer } from './outcomes.ts';
import type { ApprovalAnswer, Asked } from './schema.ts';

export interface NewAnswer {
  readonly answer: ApprovalAnswer;
  /** Null: nobody answered in all the time there was. */
  readonly by: string | null;
  readonly editedArguments: string | null;
  /** For `message`: what was typed; about an outcome: what the person adds. */
  readonly text: string | null;
  /** Id of the input that the answer becomes, where it becomes one. */
  readonly input: string;
}

export type Answered =
  | { readonly kind: 'recorded'; readonly turn: string; readonly approval: string }
  /** The turn has ended over it; the answer starts the next one. */
  | { readonly kind: 'late'; readonly session: string }
  /** It has its answer already; that one stands, and is told again. */
  | { readonly kind: 'answered_before'; readonly answer: ApprovalAnswer; readonly by: string | null }
  | {
      readonly kind: 'stale';
      readonly why: 'expired' | 'turn_ended' | 'moved_on' | 'settled' | 'archived' | 'agent_ended';
    }
  /** Not an answer to what was asked. */
  | { readonly kind: 'misfit'; readonly asks: Asked['kind'] }
  | { readonly kind: 'unknown' };

/** Records a person's answer, once: whoever comes second is told what the first one said. */
export async function answerApproval(db: Db, tenant: string, id: string, given: NewAnswer): Promise<Answered> {
  return await db.transaction(async (tx) => {
    const wait = await lockWait(tx, id);
    if (wait?.tenant !== tenant) return { kind: 'unknown' };
    if (wait.answer) return { kind: 'answered_before', answer: wait.answer, by: wait.by };
    // What became of a call is asked for the ledger's sake as well.
    const closed = wait.kind === 'outcome' && wait.isOver ? null : closedBy(wait);
    if (closed) return { kind: 'stale', why: closed };
    const answer = outcomeAnswer(given.answer);
    if (wait.kind !== 'outcome' && answer !== null) return { kind: 'misfit', asks: wait.kind };
    if (answer === null) return await answerWait(tx, wait, given);
    const { by, text: note, input } = given;
    const taken = await answerOutcome(tx, wait, { answer, by: by ?? '', note, input });
    switch (taken.kind) {
      case 'taken':
        return { kind: 'recorded', turn: wait.turn, approval: id };
      case 'later':
        return { kind: 'late', session: wait.session };
      case 'stale':
        return taken;
    }
  });
}

/** An open or answered wait with what decides where an answer goes. */
export interface Wait extends Record<string, unknown> {
  readonly id: string;
  readonly kind: Asked['kind'];
  readonly onExpiry: Asked['onExpiry'];
  readonly tool: string;
  readonly answer: ApprovalAnswer | null;
  readonly by: string | null;
  readonly call: string;
  readonly turn: string;
  readonly session: string;
  readonly tenant: string;
  readonly isExpired: boolean;
  readonly isConcluded: boolean;
  readonly end: EndReason | null;
  readonly endDetail: EndDetail | null;
  readonly isLast: boolean;
  /** Its session takes nothing. */
  readonly isArchived: boolean;
  /** Its session is a sub-agent's that has ended. */
  readonly isOver: boolean;
}

function closedBy({ isArchived, isOver }: Wait): 'archived' | 'agent_ended' | null {
  if (isOver) return 'agent_ended';
  return isArchived ? 'archived' : null;
}

/** The turn before its session before the approval, as the turn's own activities and the session's look lock them. */
async function lockWait(tx: Tx, id: string): Promise<Wait | null> {
  const { rows: owners } = await tx.execute<{ session: string }>(sql`
    select t.session from pawl.turn t join pawl.approval a on a.turn = t.id where a.id = ${storable(id)} for share of t`);
  const [owner] = owners;
  if (!owner) return null;
  await lockSession(tx, owner.session);
  const { rows } = await tx.execute<Wait>(sql`${selectWaits} where a.id = ${id} for no key update of a`);
  return rows[0] ?? null;
}

/** While this is held no turn of the session opens. */
export async function lockSession(tx: Tx, id: string): Promise<void> {
  await tx.execute(sql`select from pawl.session where id = ${id} for no key update`);
}

export const selectWaits = sql`
  select a.id, a.asked->>'kind' as kind, a.asked->>'onExpiry' as "onExpiry", a.asked->>'tool' as tool, a.answer,
         a.answered_by as by, a.call, a.turn, t.session, s.tenant, a.expires_at <= clock_timestamp() as "isExpired",
         a.settled_at is not null as "isConcluded", t.end_reason as end, t.end_detail as "endDetail",
         not exists (select from pawl.turn later where later.session = t.session and later.n > t.n)
           -- Rewound: what it was asked about is not in front of the model any more.
           and (t.ended_at is null or s.head = t.head) as "isLast",
         s.state = 'archived' as "isArchived",
         exists (select from pawl.sub_agent g where g.session = s.id and g.ended_at is not null) as "isOver"
  from pawl.approval a join pawl.turn t on t.id = a.turn join pawl.session s on s.id = t.session`;

/** For a wait whose turn (if it is open), session and row are locked. */
export async function answerWait(tx: Tx, wait: Wait, given: NewAnswer): Promise<Answered> {
  if (wait.answer) return { kind: 'answered_before', answer: wait.answer, by: wait.by };
  const { kind } = wait;
  if (kind === 'outcome') return { kind: 'misfit', asks: kind };
  const place = placeOfAnswer({ ...wait, kind });
  if (place !== 'in_turn' && place !== 'next_input') return { kind: 'stale', why: place };
  const becomes = inputKindOf(wait, given, place);
  if (becomes) {
    await insertInput(tx, {
      id: given.input,
      session: wait.session,
      kind: becomes,
      text: given.text ?? '',
      sender: given.by,
      ...(place === 'in_turn' ? { turn: wait.turn } : {}),
    });
  }
  await keepAnswer(tx, wait, given, becomes === null ? null : given.input);
  // In its turn the call is refused by the activity that settles the answer, together with what follows it.
  const isRefused = place === 'next_input' && wait.kind === 'permission' && given.answer !== 'approved';
  if (isRefused) await refuseCalls(tx, [wait.call], { status: 'denied', text: NOT_RUN, note: given.answer });
  await recordEvents(tx, wait.session, [
    answeredEvent(wait.id, wait.call, wait.turn, given.answer, given.by),
    ...(isRefused ? [deniedEvent(wait.turn, wait.call, wait.tool, given.by === null ? 'policy' : 'person')] : []),
  ]);
  return place === 'in_turn'
    ? { kind: 'recorded', turn: wait.turn, approval: wait.id }
    : { kind: 'late', session: wait.session };
}

const NOT_RUN = 'It did not run.';

/** In its turn an answer is the call's own affair, but for what was typed; afterwards it is told to the model. */
function inputKindOf({ kind }: Wait, { answer }: NewAnswer, place: AnswerPlace): InputKind | null {
  if (place === 'next_input') return 'call_back';
  if (answer !== 'message') return null;
  return kind === 'permission' ? 'steer' : 'call_back';
}

async function keepAnswer(tx: Tx, { id }: Wait, given: NewAnswer, input: string | null): Promise<void> {
  const { editedArguments: edited } = given;
  await writeAnswer(tx, id, given, { editedArguments: edited === null ? null : storable(edited), input });
}

/**
 * Closes what nobody has answered since its turn ended BLOCKED that long ago. The model is told, unless the session
 * has gone on. Returns the sessions that have something new.
 */
export async function closeForgotten(db: Db, keptMs: number): Promise<readonly string[]> {
  const { rows } = await db.execute<{ id: string }>(sql`
    select a.id from pawl.approval a join pawl.turn t on t.id = a.turn join pawl.session s on s.id = t.session
    where a.answer is null and s.state = 'open' and t.end_reason = 'BLOCKED' and a.asked->>'kind' <> 'outcome'
      and t.ended_at < clock_timestamp() - make_interval(secs => ${keptMs / 1_000}) limit 100`);
  const told: string[] = [];
  for (const { id } of rows) {
    const answered = await db.transaction((tx) => closeOne(tx, id));
    if (answered?.kind === 'late') told.push(answered.session);
  }
  return told;
}

async function closeOne(tx: Tx, id: string): Promise<Answered | null> {
  const wait = await lockWait(tx, id);
  if (!wait) return null;
  const nobody: NewAnswer = { answer: 'expired', by: null, editedArguments: null, text: null, input: newId('in') };
  if (wait.isLast) return await answerWait(tx, wait, nobody);
  if (wait.answer === null) await keepAnswer(tx, wait, nobody, null);
  return null;
}
