import { and, eq, inArray, isNotNull, sql } from 'drizzle-orm';
import type { Deps } from '../deps.ts';
import { ownerOf } from '../store/owners.ts';
import { effect, turn } from '../store/schema.ts';
import { isDead, settleAnew } from './settle-turn.ts';

const AT_ONCE = 20;
/** Past this a forge will not have changed its mind; what is unknown then, a person settles. */
const ASK_FOR_S = 3_600;

/** Goes on asking for effects of ended turns that nobody could tell about: the end did not wait for them. */
export async function settleLate(deps: Deps): Promise<void> {
  const rows = await deps.database.db
    .select({ effect })
    .from(effect)
    .innerJoin(turn, eq(turn.id, effect.turn))
    .where(
      and(
        isNotNull(turn.endedAt),
        inArray(effect.state, ['started', 'unknown']),
        sql`${effect.startedAt} > clock_timestamp() - make_interval(secs => ${ASK_FOR_S})`,
      ),
    )
    .orderBy(sql`random()`)
    .limit(AT_ONCE);
  for (const { effect: row } of rows) {
    const found = deps.tools.lookup(row.tool);
    if (row.state === 'started' ? await isDead(deps, row) : found.ok && found.tool.reconcile)
      await settleAnew(deps, await ownerOf(deps.database.db, row.turn), row, 'recovery');
  }
}
