import { and, eq, inArray, isNotNull, sql } from 'drizzle-orm';
import type { Deps } from '../deps.ts';
import { ownerOf } from '../store/owners.ts';
import { type EffectRow, readCall, settleEffect } from '../store/ledger.ts';
import { effect, turn } from '../store/schema.ts';
import { isDead, reconcile, settle } from './settle-turn.ts';

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
      await settleOne(deps, row);
  }
}

async function settleOne(deps: Deps, row: EffectRow): Promise<void> {
  const { db } = deps.database;
  const owner = await ownerOf(db, row.turn);
  const stored = await readCall(db, row.key);
  if (!stored?.call.status) return await settle(deps, owner, row);
  // The model was told that nobody knows, and the transcript keeps that; the ledger learns better.
  const told = await reconcile(deps, owner, row);
  if (told.kind === 'unknown') return;
  const as = told.kind === 'done' ? 'settled_done' : 'settled_absent';
  await settleEffect(db, { key: row.key, turn: owner.id, session: owner.session, from: row.state }, as, {
    key: `settled/late/${row.key}`,
    turn: owner.id,
    event: { kind: 'effect.settled', layer: 'batch', key: row.key, as, by: 'recovery' },
  });
}
