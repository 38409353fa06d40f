import { setTimeout as sleep } from 'node:timers/promises';
import { asc, eq } from 'drizzle-orm';
import type { RunIdentity } from '../../workflows/core/requests.ts';
import { agentsWaitId } from '../../workflows/core/agents.ts';
import { turnWorkflowId } from '../../workflows/messages.ts';
import type { Deps } from '../deps.ts';
import { ownerOf } from '../store/owners.ts';
import { storeCancel } from '../store/cancels.ts';
import { cancel } from '../store/schema.ts';
import {
  agentOfSession,
  type CascadeAuthor,
  type DueCancel,
  dueCancels,
  markFamily,
  openTurnOf,
  parentCancel,
} from '../store/sub-agents.ts';

type Reach = Pick<Deps, 'database' | 'engine' | 'log'>;

/** The turn is cancelled: so are all sub-agents of its session, at once. */
export async function stopAgents(deps: Deps, fence: RunIdentity): Promise<void> {
  const owner = await ownerOf(deps.database.db, fence.turn);
  await stopAgentsOf(deps, owner.session, await cancelAuthorOf(deps, fence));
}

/** Rows first, so that whoever dies on the way is taken over by the sweep. */
export async function stopAgentsOf(deps: Reach, session: string, author: CascadeAuthor): Promise<void> {
  await markFamily(deps.database.db, session, author);
  await cascade(deps, session);
}

/** Who cancelled a turn: the first that asked for it, else whoever the engine names. */
export async function cancelAuthorOf({ database, engine }: Reach, fence: RunIdentity): Promise<CascadeAuthor> {
  const [first] = await database.db
    .select()
    .from(cancel)
    .where(eq(cancel.turn, fence.turn))
    .orderBy(asc(cancel.seq))
    .limit(1);
  if (first) return first;
  const by = await engine.cancelAuthor(turnWorkflowId(fence.turn), fence.run);
  return { by: by ?? 'unknown', why: null, decidedBy: 'user' };
}

/** Passes the cancel of a session's sub-agents on to their turns. */
export async function cascade(deps: Reach, session: string): Promise<void> {
  await Promise.all((await dueCancels(deps.database.db, { parent: session })).map((due) => passOn(deps, due)));
}

const TRIES = 20;
const AGAIN_AFTER_MS = 250;

/** One that has no turn yet is told to look: its first turn opens cancelled. */
export async function passOn({ database, engine, log }: Reach, { agent, turn }: DueCancel): Promise<void> {
  try {
    if (turn === null) return await engine.look(agent.session);
    await storeCancel(database.db, parentCancel(agent, turn));
    // Between the row of a turn and its workflow lies a moment.
    for (let tries = 0; tries < TRIES && !(await engine.requestCancel(turnWorkflowId(turn))); tries += 1) {
      if ((await openTurnOf(database.db, agent.session)) !== turn) return;
      await sleep(AGAIN_AFTER_MS);
    }
  } catch (error) {
    log.warn(
      { session: agent.session, error: error instanceof Error ? error.name : 'unknown' },
      'a sub-agent could not be cancelled; the sweeper will',
    );
  }
}

/** Tells a turn that waits for a sub-agent that it has ended. What gets lost on the way, the sweep tells again. */
export async function tellParent({ database, engine, log }: Reach, session: string): Promise<void> {
  try {
    const row = await agentOfSession(database.db, session);
    if (!row?.endedAt) return;
    const open = await openTurnOf(database.db, row.parent);
    if (open !== null) {
      const wait = row.mode === 'foreground' ? row.session : agentsWaitId(row.parent);
      await engine.answerWaits(turnWorkflowId(open), wait);
    }
    if (row.mode === 'background') await engine.look(row.parent);
  } catch {
    log.warn({ session }, 'a turn could not be told of the end of its sub-agent; the sweeper will');
  }
}
