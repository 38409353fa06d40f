import { setTimeout as sleep } from 'node:timers/promises';
import { and, eq } from 'drizzle-orm';
import type { Db } from '../activities/store/database.ts';
import { storable } from '../activities/store/hash.ts';
import { newId } from '../activities/store/ids.ts';
import { storeCancel } from '../activities/store/cancels.ts';
import { session, subAgent } from '../activities/store/schema.ts';
import { openTurnOf } from '../activities/store/sub-agents.ts';
import type { CancelJob, CancelledJob } from './cancel.ts';
import type { ClientEngine } from './engine.ts';
import { EngineAway, onStore } from './faults.ts';

const LOOK_AGAIN_MS = 250;
const GIVE_UP_AFTER_MS = 10_000;

/**
 * Ends one sub-agent; whoever started it goes on with that as its result. Null where the tenant has no such one.
 * Throws EngineAway or StoreAway.
 */
export async function cancelAgent(
  { db, engine }: { readonly db: Db; readonly engine: ClientEngine },
  at: { readonly tenant: string; readonly agent: string },
  { by, why, id = newId('can') }: CancelJob,
): Promise<CancelledJob | null> {
  const giveUpAt = Date.now() + GIVE_UP_AFTER_MS;
  for (;;) {
    const found = await onStore(() => findAgent(db, at));
    if (!found) return null;
    if (found.endedAt) return 'already_ended';
    const open = await onStore(() => openTurnOf(db, at.agent));
    if (open !== null) {
      const request = {
        turn: open,
        id: `${at.agent}/${id}`,
        by,
        why: why ?? null,
        decidedBy: 'user',
        detail: 'user_cancel',
      } as const;
      const stored = await onStore(() => storeCancel(db, request));
      if (stored === 'stored' && (await engine.cancel(open))) return 'took_request';
    }
    if (Date.now() > giveUpAt) throw new EngineAway();
    await sleep(LOOK_AGAIN_MS);
  }
}

async function findAgent(db: Db, { tenant, agent }: { tenant: string; agent: string }) {
  const [row] = await db
    .select({ endedAt: subAgent.endedAt })
    .from(subAgent)
    .innerJoin(session, eq(session.id, subAgent.session))
    .where(and(eq(subAgent.session, storable(agent)), eq(session.tenant, tenant)));
  return row ?? null;
}
