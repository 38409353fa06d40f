import { type GoalFact, type GoalState, isFinal } from '../../workflows/core/goal/goal-state.ts';
import { turnWorkflowId } from '../../workflows/messages.ts';
import type { Deps } from '../deps.ts';
import { recordFacts } from '../store/goal-record.ts';
import { goalPlace } from '../store/goals.ts';
import { storeCancel } from '../store/cancels.ts';

export interface RecordGoalRequest {
  readonly goal: string;
  readonly facts: readonly GoalFact[];
  readonly state: GoalState;
}

/** Tells the store what the goal has settled; a turn that is to be cancelled gets its row, then the engine is asked. */
export async function recordGoal(deps: Deps, { goal, facts, state }: RecordGoalRequest): Promise<void> {
  const { db } = deps.database;
  const place = await goalPlace(db, goal);
  if (!place) return;
  const cancels = await recordFacts(db, { goal, session: place.row.session }, facts, state);
  deps.notifier.moved(place.stream);
  if (isFinal(state.status)) await deps.engine.endSchedule(goal);
  for (const { turn, command, id } of cancels) {
    const stored = await storeCancel(db, {
      turn,
      id: `${goal}/${id}`,
      by: command?.by ?? goal,
      why: command?.why ?? 'The goal was cancelled.',
      decidedBy: 'user',
      detail: 'user_cancel',
    });
    if (stored === 'stored') await deps.engine.requestCancel(turnWorkflowId(turn));
  }
}
