import { and, desc, eq } from 'drizzle-orm';
import { POLICY } from '../../workflows/core/policy.ts';
import { toPlainText } from '../context/plain-text.ts';
import { viewOf } from '../context/view.ts';
import type { Deps } from '../deps.ts';
import { goalVerdict, turn } from '../store/schema.ts';
import type { GoalPlace } from '../store/goals.ts';
import { loadChain } from '../store/transcript.ts';
import { fitText } from '../tools/text.ts';
import { fenced } from './directive-text.ts';
import { claimOf } from './claim.ts';
import { claimedIn } from '../store/goal-look.ts';

/** What a judge is shown of a turn: the objective, the checks, the claim, and the newest part of the conversation. */
export async function judgeMaterial(deps: Deps, { row }: GoalPlace, turnId: string, now: Date): Promise<string> {
  const { db } = deps.database;
  const [judged] = await db.select({ head: turn.head }).from(turn).where(eq(turn.id, turnId));
  const chain = await loadChain(db, deps.chains, judged?.head ?? '');
  const { summary, links } = viewOf(chain);
  const bodies = links.map(({ body }) => body);
  const [checks] = await db
    .select({ text: goalVerdict.text })
    .from(goalVerdict)
    .where(and(eq(goalVerdict.goal, row.id), eq(goalVerdict.turn, turnId), eq(goalVerdict.source, 'checks')))
    .orderBy(desc(goalVerdict.createdAt))
    .limit(1);
  const claimed = await claimedIn(db, turnId);
  const claim = claimed === null ? null : claimOf(claimed);
  return [
    fenced('objective', fitText(row.objective, POLICY.goal.objectiveChars)),
    fenced('checks', checks?.text ?? 'This goal has no checks of its own.'),
    fenced('claim', claim ? `${claim.said}` : 'The agent claims nothing.'),
    fenced('conversation', toPlainText(summary ? [summary, ...bodies] : bodies, POLICY.goal.judge.transcriptTokens)),
    `Now is ${now.toISOString()}. Judge.`,
  ].join('\n\n');
}
