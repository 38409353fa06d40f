import type { WakeArgs } from '../../workflows/messages.ts';
import type { Deps } from '../deps.ts';
import { fireTemplate, isOver, wakeBySchedule } from '../store/firings.ts';

export interface FireRequest extends WakeArgs {
  /** The time that the firing was meant for, ms since the epoch. */
  readonly slotMs: number;
}

/** Records a firing once, whatever is repeated, and tells the goal that it concerns. What is over fires no more. */
export async function fireWake(deps: Deps, { target, id, slotMs }: FireRequest): Promise<void> {
  const { db } = deps.database;
  const slot = new Date(slotMs);
  const goal = target === 'template' ? await fireTemplate(db, id, slot) : await wakeBySchedule(db, id, slot);
  if (goal !== null) await deps.engine.lookGoal(goal);
  // The engine may have been away when it ended.
  if (await isOver(db, { target, id })) await deps.engine.endSchedule(id);
}
