import { and, asc, eq, inArray, or, sql } from 'drizzle-orm';
import { type InputKind, SAID_TO_TURN } from '../../workflows/core/inputs.ts';
import type { HookEvent, HookFailure } from '../gate/hook-types.ts';
import type { Db, Tx } from './database.ts';
import { type NewEvent, recordEvents } from './events.ts';
import { storable } from './hash.ts';
import { newId } from './ids.ts';
import { insertInput } from './intake.ts';
import { isUnlocked } from './queued.ts';
import { approval, input, session } from './schema.ts';

/** What people write; hooks may keep it from an agent. */
const SCREENED: readonly InputKind[] = ['prompt', ...SAID_TO_TURN];

/** A message typed instead of an answer, after its turn had ended: a person wrote it, whatever brings it. */
export const isTypedAnswer = sql<boolean>`(pawl.input.kind = 'call_back' and pawl.input.body <> '' and exists (
  select from pawl.approval a
  where a.input = pawl.input.id and a.answer = 'message' and a.asked->>'kind' = 'permission'))`;

/** Which hooks there are, and what they have let pass: an input's id and its text as they saw it. */
export interface Screening {
  has(event: HookEvent, tool?: string): boolean;
  readonly cleared: ReadonlyMap<string, string>;
  /** Heads whose open calls nobody can give results: a turn opens on them as they are. */
  readonly beyondRepair?: ReadonlySet<string>;
}

export const UNSCREENED: Screening = { has: () => false, cleared: new Map() };

/** An input that hooks must be asked about before a turn may have it. */
export interface ToScreen {
  readonly kind: 'screen';
  readonly input: string;
  readonly source: InputKind;
  readonly text: string;
  readonly sender: string | null;
  readonly workspace: string;
  /** The running turn that it would join. */
  readonly turn: string | null;
}

type InputRow = typeof input.$inferSelect;
type SessionRow = Pick<typeof session.$inferSelect, 'id' | 'workspacePath' | 'parent'>;

/**
 * What an agent gave to one that it started, in the session of the latter. By its name alone it could be anybody's: what
 * comes in by a door has a fingerprint, or is no prompt.
 */
export function isGivenWork({ kind, sender, fingerprint }: InputRow, parent: string | null): boolean {
  return parent !== null && sender === parent && kind === 'prompt' && fingerprint === null;
}

/** What a turn had before was screened then. */
export function toScreen(
  { row, isTyped }: { readonly row: InputRow; readonly isTyped: boolean },
  { workspacePath: workspace, parent }: SessionRow,
  turn: string | null,
  screening: Screening,
): ToScreen | null {
  // It is no person's word; the call that gave it has had its own guards.
  if (isGivenWork(row, parent)) return null;
  const isOfPerson = isTyped || SCREENED.includes(row.kind);
  const isNew = isOfPerson && !row.isLeftOver && screening.cleared.get(row.id) !== row.body;
  if (!isNew || !screening.has('UserPromptSubmit')) return null;
  const source = isTyped ? 'steer' : row.kind;
  return { kind: 'screen', input: row.id, source, text: row.body, sender: row.sender, workspace, turn };
}

/** The first message of a person that is about to join a turn and that nobody was asked about. */
export async function firstToScreen(
  tx: Tx,
  owner: SessionRow,
  turn: string | null,
  screening: Screening,
): Promise<ToScreen | null> {
  if (!screening.has('UserPromptSubmit')) return null;
  const rows = await tx
    .select({ row: input, isTyped: isTypedAnswer })
    .from(input)
    .where(
      and(
        eq(input.session, owner.id),
        eq(input.status, 'queued'),
        or(inArray(input.kind, [...SAID_TO_TURN]), isTypedAnswer),
        isUnlocked,
      ),
    )
    .orderBy(asc(input.seq));
  for (const row of rows) {
    const found = toScreen(row, owner, turn, screening);
    if (found) return found;
  }
  return null;
}

/** Keeps an input from every turn, with what the hook said; nothing where it is not as the hook saw it any more. */
export async function blockInput(
  db: Db,
  sessionId: string,
  screened: ToScreen,
  why: string,
  failures: readonly HookFailure[],
): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.select({ id: session.id }).from(session).where(eq(session.id, sessionId)).for('no key update');
    const blocked = await tx
      .update(input)
      .set(hookBlocked(why))
      .where(and(eq(input.id, screened.input), eq(input.status, 'queued'), eq(input.body, screened.text)))
      .returning();
    for (const row of blocked) if (row.kind === 'call_back') await leaveRefusal(tx, row);
    const events = blocked.length > 0 ? [blockedEvent(screened, why)] : [];
    await recordEvents(tx, sessionId, [...screeningFailures(screened.input, screened.turn, failures), ...events]);
  });
}

/** Of a message typed instead of an answer the no is left, which the next turn is told. */
async function leaveRefusal(tx: Tx, { id, session: owner, sender }: InputRow): Promise<void> {
  const no = newId('in');
  await insertInput(tx, { id: no, session: owner, kind: 'call_back', text: '', sender });
  await tx.update(approval).set({ input: no }).where(eq(approval.input, id));
}

/** What becomes of an input that a hook keeps back. */
export function hookBlocked(why: string) {
  return { status: 'hook_blocked', droppedWhy: storable(why), droppedAt: sql`clock_timestamp()` } as const;
}

export function blockedEvent({ input: id, turn }: Pick<ToScreen, 'input' | 'turn'>, why: string): NewEvent {
  return {
    key: `blocked/${id}`,
    turn,
    event: { kind: 'input.dropped', layer: 'driver', input: id, status: 'hook_blocked', by: null, why },
  };
}

export function screeningFailures(id: string, turn: string | null, failures: readonly HookFailure[]): NewEvent[] {
  return failures.map(({ hook, why }, n) => ({
    key: `hook/${id}/${n}`,
    turn,
    event: { kind: 'hook.failed', layer: 'driver', hook, why },
  }));
}
