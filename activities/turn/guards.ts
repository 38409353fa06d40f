import { eq } from 'drizzle-orm';
import type { Deps } from '../deps.ts';
import type { Guards, PlanMode } from '../gate/judge.ts';
import { DEFAULT_PERMISSIONS } from '../gate/permissions.ts';
import { agentOf } from '../store/definitions.ts';
import type { TurnOwner } from '../store/owners.ts';
import { session } from '../store/schema.ts';

/** The one file that a planning session may write. */
const PLAN_FILE = 'PLAN.md';

export function planOf(planning: boolean): PlanMode | null {
  return planning ? { file: PLAN_FILE } : null;
}

/** The three guards of a turn's calls, as they stand now. */
export async function guardsOf(deps: Deps, owner: TurnOwner, signal: AbortSignal): Promise<Guards> {
  const { db } = deps.database;
  const agent = await agentOf(db, owner.agent);
  const [row] = await db.select({ plan: session.plan }).from(session).where(eq(session.id, owner.session));
  return {
    plan: planOf(row?.plan === true),
    hooks: deps.hooks,
    permissions: agent.permissions ?? DEFAULT_PERMISSIONS,
    attended: agent.attended,
    workspace: owner.workspacePath,
    session: owner.session,
    turn: owner.id,
    signal,
  };
}
