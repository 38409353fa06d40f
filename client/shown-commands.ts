import type { Db } from '../activities/store/database.ts';
import { listCommands } from '../activities/store/goal-commands.ts';
import type { GoalCommand } from '../workflows/core/goal/goal-event.ts';

/** What somebody told a goal to do, and the status that it brought about; null: that is not known yet. */
export interface ShownCommand {
  readonly id: string;
  readonly kind: GoalCommand['kind'];
  readonly by: string | null;
  readonly why: string | null;
  readonly answer: string | null;
  readonly at: string;
}

export async function shownCommands(db: Db, id: string): Promise<readonly ShownCommand[]> {
  const rows = await listCommands(db, id, SHOWN);
  return rows.map((row) => ({ ...row, at: row.at.toISOString() }));
}

const SHOWN = 200;
