import { and, eq, getTableColumns, inArray, sql } from 'drizzle-orm';
import type { Db, Tx } from './database.ts';
import { approval, call, effect, input, turn } from './schema.ts';

/** What an input answers, where it brings the answer to a wait. */
export interface AnsweredWait {
  readonly approval: typeof approval.$inferSelect;
  readonly call: typeof call.$inferSelect;
  /** The ledger has the call's effect as more than intended. */
  readonly begun: boolean;
}

export type InputRow = typeof input.$inferSelect & { readonly answers: AnsweredWait | null };

/** Inputs in the order given. */
export async function readInputs(db: Db | Tx, ids: readonly string[]): Promise<InputRow[]> {
  if (ids.length === 0) return [];
  const rows = await selectInputs(db).where(inArray(input.id, [...ids]));
  return ids.flatMap((id) => rows.filter((row) => row.input.id === id).map(toRow));
}

/** The input that a turn has opened with; of `late_yes`: null for a turn that opened with another one. */
export async function openerOf(db: Db | Tx, turnId: string, which: 'any' | 'late_yes'): Promise<InputRow | null> {
  const [row] = await selectInputs(db)
    .innerJoin(turn, eq(turn.input, input.id))
    .where(and(eq(turn.id, turnId), which === 'any' ? undefined : eq(approval.answer, 'approved')));
  return row ? toRow(row) : null;
}

function selectInputs(db: Db | Tx) {
  return db
    .select({
      input: getTableColumns(input),
      approval,
      call,
      begun: sql<boolean>`coalesce(${effect.state} <> 'intended', false)`,
    })
    .from(input)
    .leftJoin(approval, eq(approval.input, input.id))
    .leftJoin(call, eq(call.key, approval.call))
    .leftJoin(effect, eq(effect.key, approval.call))
    .$dynamic();
}

function toRow(row: {
  input: typeof input.$inferSelect;
  approval: AnsweredWait['approval'] | null;
  call: AnsweredWait['call'] | null;
  begun: boolean;
}): InputRow {
  const { approval: answered, call: asked, begun } = row;
  return { ...row.input, answers: answered && asked ? { approval: answered, call: asked, begun } : null };
}
