import { eq } from 'drizzle-orm';
import type { End } from '../../workflows/core/ends.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import { turnWorkflowId } from '../../workflows/messages.ts';
import type { Deps } from '../deps.ts';
import type { WorkflowFate } from '../engine/port.ts';
import { type EndFacts, tellOfEnd, writeTurnEnd } from '../turn/end-turn.ts';
import { call, turn } from '../store/schema.ts';
import { settleTurn } from './settle-turn.ts';
import { FenceRefused, lockOpenTurn } from '../store/fence.ts';

export type Recovered = 'running' | 'ended' | 'stamped' | 'too_young';

/**
 * For a turn whose workflow may be gone. Acts only where the engine says that it is closed (or, for a turn
 * that was opened a minute ago or more, does not know it): settles what can be settled, then writes the end.
 */
export async function recoverTurn(deps: Deps, id: string): Promise<Recovered> {
  const { db } = deps.database;
  const [row] = await db.select().from(turn).where(eq(turn.id, id));
  if (!row || row.endedAt) return 'ended';
  const fate = await deps.engine.fateOf(turnWorkflowId(id));
  if (fate.kind === 'running') return 'running';
  const ageMs = Date.now() - row.openedAt.getTime();
  if (fate.kind === 'unknown' && ageMs < POLICY.recovery.unknownAfterMs) return 'too_young';
  const owner = await db.transaction((tx) => lockOpenTurn(tx, id));
  if (!owner) return 'ended';
  await settleTurn(deps, owner);
  const facts: EndFacts = {
    end: endOf(fate),
    step: await stepsOf(deps, id),
    runningMs: null,
    author: fate.kind === 'terminated' ? { by: fate.by, why: fate.why } : { by: null, why: null },
    recordedBy: 'recovery',
  };
  try {
    await writeTurnEnd(deps, owner, facts, async (tx) => {
      const locked = await lockOpenTurn(tx, id);
      if (!locked) throw new FenceRefused('turn.already_ended');
      return locked;
    });
  } catch (error) {
    if (error instanceof FenceRefused) return 'ended';
    throw error;
  }
  await tellOfEnd(deps, owner.session);
  return 'stamped';
}

function endOf(fate: WorkflowFate): End {
  const engine = (event: string) => ({ name: 'engine', event }) as const;
  const at = { reason: 'INTERRUPTED', phase: 'cleanup' } as const;
  switch (fate.kind) {
    case 'terminated':
      return { ...at, detail: 'terminated', decidedBy: 'user', signal: engine('terminated') };
    case 'timed_out':
      return { ...at, detail: 'timed_out', decidedBy: 'runtime', signal: engine('timed_out') };
    case 'failed':
      if (fate.type === 'turn.unknown_outcome') {
        return { ...at, detail: 'unknown_outcome', decidedBy: 'runtime', signal: { name: 'fault', type: fate.type } };
      }
      if (fate.type === 'turn.workspace_lost') {
        return { ...at, detail: 'workspace_lost', decidedBy: 'runtime', signal: { name: 'fault', type: fate.type } };
      }
      return { ...at, detail: 'lost', decidedBy: 'runtime', signal: { name: 'fault', type: fate.type ?? 'unnamed' } };
    default:
      return { ...at, detail: 'lost', decidedBy: 'runtime', signal: engine(fate.kind) };
  }
}

async function stepsOf(deps: Deps, id: string): Promise<number> {
  const rows = await deps.database.db.selectDistinct({ step: call.step }).from(call).where(eq(call.turn, id));
  return rows.length;
}
