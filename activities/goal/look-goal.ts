import type { EndedTurn, GoalBill } from '../../workflows/core/goal/goal-event.ts';
import type { CameWake, GoalState } from '../../workflows/core/goal/goal-state.ts';
import type { Deps } from '../deps.ts';
import { type EndedRow, lookForGoal } from '../store/goal-look.ts';
import { findGoal, goalPlace } from '../store/goals.ts';
import { lastTextOf } from '../store/last-text.ts';
import { takenWakes } from '../store/taken-wakes.ts';
import { claimOf, wordsHash } from './claim.ts';

/** A goal as its workflow begins, or begins again: where it stood when it last told the store. */
export interface OpenedGoal {
  readonly session: string;
  /** Task queue of the workers that have its files. */
  readonly workspaceQueue: string;
  readonly state: GoalState;
}

/** Null: the store knows no such goal. */
export async function loadGoal(deps: Deps, id: string): Promise<OpenedGoal | null> {
  const place = await goalPlace(deps.database.db, id);
  if (!place) return null;
  return { session: place.row.session, workspaceQueue: place.workspaceQueue, state: place.row.state };
}

export interface GoalLookRequest {
  readonly goal: string;
  /** Number of the last turn that was counted. */
  readonly afterTurn: number;
  /** Number of the last one that ended before the goal began: those after it are on its bill. */
  readonly sinceTurn: number;
}

export interface LookedGoal {
  readonly turns: readonly EndedTurn[];
  readonly bill: GoalBill;
  readonly wakes: readonly CameWake[];
  readonly taken: readonly string[];
  readonly begun: number;
  readonly withdrawn: number | null;
  readonly more: boolean;
}

/** What has happened in the session since, as small as a history wants it. */
export async function lookGoal(deps: Deps, { goal: id, afterTurn, sinceTurn }: GoalLookRequest): Promise<LookedGoal> {
  const { db } = deps.database;
  const row = await findGoal(db, id);
  if (!row) throw new Error('a goal is not in the store');
  const found = await lookForGoal(db, { goal: id, session: row.session, afterTurn, sinceTurn });
  // Behind the turns: what an ended one has taken is known with its end.
  const taken = await takenWakes(db, id);
  const turns: EndedTurn[] = [];
  for (const each of found.turns) turns.push(await asEnded(deps, each));
  return { ...found, taken, turns };
}

async function asEnded(deps: Deps, { head, claimed, ...ended }: EndedRow): Promise<EndedTurn> {
  const said = await lastTextOf(deps, head);
  const claim = claimed === null ? null : claimOf(claimed);
  return { ...ended, reply: wordsHash(said ?? ''), claim: claim?.claim ?? null };
}
