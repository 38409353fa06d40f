import { and, desc, eq, gt, isNull, notInArray, or, sql } from 'drizzle-orm';
import { BACKGROUND } from '../../workflows/core/inputs.ts';
import type { RoundLimits } from '../../workflows/core/goal/goal-limits.ts';
import type { Db, Tx } from './database.ts';
import { recordEvents } from './events.ts';
import { sha256 } from './hash.ts';
import { insertInput } from './intake.ts';
import { goal as goalTable, goalRound, input, session, turn } from './schema.ts';

export interface Directive {
  readonly goal: string;
  readonly session: string;
  readonly round: number;
  readonly limits: RoundLimits;
  /** Number of the last turn that the goal has counted. */
  readonly afterTurn: number;
  readonly text: string;
}

/**
 * Queues the directive of a round, if the session is idle, its ends are counted, and nothing of a person waits there:
 * one transaction, one input a round whatever is repeated.
 */
export async function queueDirective(db: Db, directive: Directive): Promise<'queued' | 'busy' | 'closed'> {
  const { goal, session: owner, round, limits, afterTurn, text } = directive;
  return await db.transaction(async (tx) => {
    const [row] = await tx.select().from(session).where(eq(session.id, owner)).for('no key update');
    const before = await tx.$count(goalRound, and(eq(goalRound.goal, goal), eq(goalRound.round, round)));
    if (before > 0) return 'queued';
    if (!row || row.state !== 'open') return 'closed';
    if (!(await isActive(tx, goal)) || (await isBusy(tx, owner, afterTurn))) return 'busy';
    const id = directiveId(goal, round);
    await insertInput(tx, { id, session: owner, kind: 'directive', text, sender: goal });
    await tx.insert(goalRound).values({ goal, round, input: id, limits });
    await recordEvents(tx, owner, [
      {
        key: `input/${id}`,
        turn: null,
        event: { kind: 'input.accepted', layer: 'driver', input: id, source: 'directive', by: goal },
      },
    ]);
    return 'queued';
  });
}

export function directiveId(goal: string, round: number): string {
  return `in_${sha256('directive', goal, String(round)).slice(0, 32)}`;
}

/** An attempt that was thought lost may come when the goal rests already. */
async function isActive(tx: Tx, id: string): Promise<boolean> {
  return (await tx.$count(goalTable, and(eq(goalTable.id, id), eq(goalTable.status, 'active')))) > 0;
}

/** A turn runs, or has ended and what it spent is not in the limits. */
async function isBusy(tx: Tx, owner: string, afterTurn: number): Promise<boolean> {
  const uncounted = await tx.$count(
    turn,
    and(eq(turn.session, owner), or(gt(turn.n, afterTurn), isNull(turn.endedAt))),
  );
  if (uncounted > 0) return true;
  // After a person's cancel background results wait for the next turn, so they keep none back.
  const waiting = and(eq(input.session, owner), eq(input.status, 'queued'), notInArray(input.kind, [...BACKGROUND]));
  return (await tx.$count(input, waiting)) > 0;
}

/** Takes a directive back that no turn has begun with. Returns the turn that has, if one has. */
export async function withdrawDirective(
  tx: Tx,
  at: { readonly goal: string; readonly session: string; readonly round: number | 'newest' },
): Promise<{ readonly withdrawn: string | null; readonly turn: string | null }> {
  // The same order of locks as the session's own look at its queue.
  await tx.select({ id: session.id }).from(session).where(eq(session.id, at.session)).for('no key update');
  const [row] = await tx
    .select({ id: input.id, status: input.status, turn: input.turn })
    .from(goalRound)
    .innerJoin(input, eq(input.id, goalRound.input))
    .where(and(eq(goalRound.goal, at.goal), at.round === 'newest' ? undefined : eq(goalRound.round, at.round)))
    .orderBy(desc(goalRound.round))
    .limit(1);
  if (row?.status !== 'queued') return { withdrawn: null, turn: row?.turn ?? null };
  await tx
    .update(input)
    .set({
      status: 'withdrawn',
      droppedBy: at.goal,
      droppedWhy: 'The goal rests.',
      droppedAt: sql`clock_timestamp()`,
    })
    .where(eq(input.id, row.id));
  return { withdrawn: row.id, turn: null };
}
