import { and, desc, eq } from 'drizzle-orm';
import type { GoalCommand } from '../../workflows/core/goal/goal-event.ts';
import type { GoalBudget } from '../../workflows/core/goal/goal-state.ts';
import type { Db } from './database.ts';
import { contentHash, storable, storableDeep } from './hash.ts';
import { type GoalCheck, goalCommand } from './schema.ts';

export interface NewGoalCommand {
  readonly goal: string;
  /** The same id again is the same command. */
  readonly id: string;
  readonly kind: GoalCommand['kind'];
  readonly objective?: string | undefined;
  readonly budget?: Partial<GoalBudget> | undefined;
  readonly checks?: readonly GoalCheck[] | null;
  readonly by: string | null;
  readonly why: string | null;
}

/** Stores what a goal is to be told, its text above all. `conflict`: the id was used for something else. */
export async function storeGoalCommand(
  db: Db,
  command: NewGoalCommand,
): Promise<{ readonly kind: 'stored'; readonly answer: string | null } | { readonly kind: 'conflict' }> {
  const { goal, id, kind, objective, budget, checks = null, by, why } = command;
  const fingerprint = contentHash([kind, objective ?? null, budget ?? null, checks]);
  await db
    .insert(goalCommand)
    .values({
      goal,
      id,
      kind,
      fingerprint,
      objective: objective === undefined ? null : storable(objective),
      budget: budget ?? null,
      checks: checks && storableDeep(checks),
      by: by === null ? null : storable(by),
      why: why === null ? null : storable(why),
    })
    .onConflictDoNothing();
  const [row] = await db
    .select()
    .from(goalCommand)
    .where(and(eq(goalCommand.goal, goal), eq(goalCommand.id, id)));
  return row?.fingerprint === fingerprint ? { kind: 'stored', answer: row.answer } : { kind: 'conflict' };
}

export async function isKnownCommand(db: Db, { goal, id }: Pick<NewGoalCommand, 'goal' | 'id'>): Promise<boolean> {
  return (await db.$count(goalCommand, and(eq(goalCommand.goal, goal), eq(goalCommand.id, id)))) > 0;
}

export async function keepAnswer(db: Db, goal: string, id: string, answer: string): Promise<void> {
  await db
    .update(goalCommand)
    .set({ answer })
    .where(and(eq(goalCommand.goal, goal), eq(goalCommand.id, id)));
}

/** Newest first. */
export async function listCommands(db: Db, goal: string, most: number) {
  const { id, kind, by, why, answer, createdAt } = goalCommand;
  return await db
    .select({ id, kind, by, why, answer, at: createdAt })
    .from(goalCommand)
    .where(eq(goalCommand.goal, goal))
    .orderBy(desc(createdAt), desc(id))
    .limit(most);
}
