import { leftOf } from '../../workflows/core/goal/goal-limits.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Db } from '../store/database.ts';
import { verdictText } from '../store/goal-verdicts.ts';
import { openGoalOf } from '../store/goals.ts';
import { fitText } from '../tools/text.ts';
import { fenced, leftWords } from './directive-text.ts';

/** What the model is told of its session's goal; null where it has none that is open. */
export async function goalText(db: Db, session: string): Promise<string | null> {
  const row = await openGoalOf(db, session);
  if (!row) return null;
  const { budget, spent, rounds, verdict } = row.state;
  const found = await verdictText(db, verdict);
  return [
    fenced('objective', fitText(row.objective, POLICY.goal.objectiveChars)),
    `Status: ${row.status}, round ${rounds}.`,
    `Left before this turn: ${leftWords(budget.turns - spent.turns, leftOf(row.state))}.`,
    ...(found ? [fenced('verdict', found.text)] : []),
  ].join('\n\n');
}
