import { and, eq, isNull, sql } from 'drizzle-orm';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Deps } from '../deps.ts';
import { closeLostAttempts } from '../store/samples.ts';
import { turn, usage } from '../store/schema.ts';

const AT_ONCE = 100;

/**
 * Streams whose turn has ended long since and that nobody has closed: their worker died after the cancel, or
 * was still busy when the cleanup's time was over. Whatever comes later still corrects the usage.
 */
export async function closeLeftStreams({ database: { db } }: Deps): Promise<void> {
  const left = await db
    .selectDistinct({ sample: usage.sample, turn: usage.turn, session: usage.session })
    .from(usage)
    .innerJoin(turn, eq(turn.id, usage.turn))
    .where(
      and(
        isNull(usage.closedAt),
        sql`${turn.endedAt} < clock_timestamp() - make_interval(secs => ${POLICY.cleanup.deadlineMs / 1_000})`,
      ),
    )
    .limit(AT_ONCE);
  for (const each of left) await closeLostAttempts(db, { ...each, mine: null });
}
