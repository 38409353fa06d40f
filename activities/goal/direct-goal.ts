import type { RoundLimits } from '../../workflows/core/goal/goal-limits.ts';
import type { Deps } from '../deps.ts';
import { directiveId, queueDirective } from '../store/goal-direct.ts';
import { wakingEvents } from '../store/wakes.ts';
import { verdictText } from '../store/goal-verdicts.ts';
import { goalPlace } from '../store/goals.ts';
import { markDispatched } from '../store/intake.ts';
import { directiveText } from './directive-text.ts';

export interface DirectGoalRequest {
  readonly goal: string;
  readonly round: number;
  /** What the round may use at most: what is left of the goal's budget. */
  readonly limits: RoundLimits;
  readonly turnsLeft: number;
  /** Number of the last turn that was counted: `limits` knows of none after it. */
  readonly afterTurn: number;
  readonly verdict: string | null;
}

/** Queues the directive of a round where the session is idle and no person waits, and wakes the session. */
export async function directGoal(deps: Deps, request: DirectGoalRequest): Promise<'queued' | 'busy' | 'closed'> {
  const { db } = deps.database;
  const { goal, round, limits, turnsLeft, afterTurn } = request;
  const place = await goalPlace(db, goal);
  if (!place) return 'closed';
  // All that is left is lent to sub-agents that still run.
  if (limits.maxTokens === 0 || limits.maxMicroUsd === 0) return 'busy';
  const { session, objective } = place.row;
  const verdict = await verdictText(db, request.verdict);
  const events = await wakingEvents(db, goal);
  const text = directiveText({ objective, round, turnsLeft, limits, verdict, events });
  const outcome = await queueDirective(db, { goal, session, round, limits, afterTurn, text });
  if (outcome !== 'queued') return outcome;
  deps.notifier.moved(place.stream);
  await deps.engine.look(session);
  await markDispatched(db, [directiveId(goal, round)]);
  return outcome;
}
