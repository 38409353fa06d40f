import { offerAgents } from '../agents/offer.ts';
import type { Deps } from '../deps.ts';
import { isRemoteName } from '../mcp/names.ts';
import { recordEvents } from '../store/events.ts';
import { type Advance, advance, type DescribeTools } from '../store/queue.ts';
import { blockInput, screeningFailures, type ToScreen } from '../store/screening.ts';
import { repairSession } from './repair-session.ts';
import { screenInput } from './screen-input.ts';

export interface AdvanceRequest {
  readonly session: string;
  /** The turn that this run of the session workflow has started or adopted. */
  readonly started: string | null;
}

/** An agent is pinned for longer than a deploy: a tool that went meanwhile is no longer offered. */
function isThere({ tools }: Deps, name: string): boolean {
  return isRemoteName(name) || tools.lookup(name).ok;
}

/** One look of a session at its queue: acknowledges, opens the next turn, or says what to forward. */
export async function advanceSession(deps: Deps, request: AdvanceRequest): Promise<Advance> {
  const { db } = deps.database;
  const cleared = new Map<string, string>();
  const beyondRepair = new Set<string>();
  const screening = { has: deps.hooks.has, cleared, beyondRepair };
  let hasListed = deps.tools.refresh === undefined;
  const describe: DescribeTools = (names, agents) =>
    hasListed ? offerAgents(deps.tools.describe(names.filter((name) => isThere(deps, name))), agents) : null;
  for (;;) {
    const { next, stream } = await advance(db, request.session, request.started, describe, screening);
    if (stream !== null) deps.notifier.moved(stream);
    deps.reporter.wake();
    switch (next.kind) {
      case 'screen':
        await screen(deps, request.session, next, cleared);
        break;
      case 'list':
        await deps.tools.refresh?.();
        hasListed = true;
        break;
      case 'repair':
        // One try: what is still open then is repaired in each request instead.
        beyondRepair.add(next.head);
        await repairSession(deps, { session: request.session, head: next.head });
        break;
      default:
        return next;
    }
  }
}

/** Hooks are asked outside the transaction that takes the input, which then looks whether it is still the same. */
async function screen(deps: Deps, session: string, next: ToScreen, cleared: Map<string, string>): Promise<void> {
  const { db } = deps.database;
  const { deny, failures } = await screenInput(deps, session, next);
  if (deny !== null) return await blockInput(db, session, next, deny, failures);
  cleared.set(next.input, next.text);
  await recordEvents(db, session, screeningFailures(next.input, next.turn, failures));
}
