import { and, eq } from 'drizzle-orm';
import type { Db } from './database.ts';
import { claimedIn, eventHash } from './goal-look.ts';
import type { GoalRow } from './goals.ts';
import { goalVerdict } from './schema.ts';

/** How a verdict names the event that the judge waits for; a line of its own. */
export function waitsForLine(event: string): string {
  return `Waits for: ${event.replaceAll(/\s+/g, ' ').trim()}`;
}

/**
 * The event that a goal waits for, by the name that its model or its judge gave it: a state holds only the hash. Null
 * where it waits for none.
 */
export async function awaitedEvent(db: Db, { id, state }: GoalRow): Promise<string | null> {
  const { status, seenTurn } = state;
  if (status.kind !== 'waiting' || status.awaited.on !== 'event' || !seenTurn) return null;
  const { event } = status.awaited;
  const claimed = await claimedIn(db, seenTurn.turn);
  const verdicts = await db
    .select({ text: goalVerdict.text })
    .from(goalVerdict)
    .where(and(eq(goalVerdict.goal, id), eq(goalVerdict.turn, seenTurn.turn), eq(goalVerdict.source, 'judge')));
  const judged = verdicts.map(({ text }) => /^Waits for: (.+)$/m.exec(text)?.[1] ?? '');
  return [eventIn(claimed ?? '{}'), ...judged].find((name) => eventHash(name) === event) ?? null;
}

function eventIn(claimed: string): string {
  try {
    const { event } = JSON.parse(claimed) as { readonly event?: unknown };
    return typeof event === 'string' ? event : '';
  } catch {
    return '';
  }
}
