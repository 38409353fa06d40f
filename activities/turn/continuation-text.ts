import { and, asc, eq, inArray } from 'drizzle-orm';
import { continuesByItself, type End, type EndDetail } from '../../workflows/core/ends.ts';
import type { Db } from '../store/database.ts';
import { call, effect } from '../store/schema.ts';
import { fitText } from '../tools/text.ts';

const SHOWN_CALLS = 20;
const SHOWN_CHARS = 200;

/**
 * What the model is told where a job goes on after an end that a machine made: what happened, what may have partly
 * happened, and to check before it repeats anything. Null for other ends.
 */
export async function continuationText(db: Db, turnId: string, end: End): Promise<string | null> {
  if (!continuesByItself(end, { continuations: 0, cancelAsked: false })) return null;
  const doubted = await db
    .select({ tool: call.tool, arguments: call.arguments })
    .from(effect)
    .innerJoin(call, eq(call.key, effect.key))
    .where(and(eq(effect.turn, turnId), inArray(effect.state, ['started', 'unknown'])))
    .orderBy(asc(call.step), asc(call.ordinal))
    .limit(SHOWN_CALLS);
  return [
    `The turn before this one was cut off: ${WHAT_HAPPENED[end.detail] ?? 'its process was lost'}. Nobody stopped it on purpose. The task is the same: go on where it stopped.`,
    doubted.length === 0
      ? 'Its last text may be cut short. Check the state of things before you repeat anything.'
      : 'Its last text may be cut short. Check the state of things before you repeat anything, above all what these calls did, of which it is not known whether they took effect:',
    ...doubted.map((each) => `- ${each.tool} ${fitText(each.arguments, SHOWN_CHARS)}`),
  ].join('\n');
}

const WHAT_HAPPENED: Readonly<Partial<Record<EndDetail, string>>> = {
  timed_out: 'its time in the workflow engine was over',
  workspace_lost: 'no machine that has the files of the workspace took its call in time',
  lost: 'its process was lost',
};
