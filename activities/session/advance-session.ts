import type { Deps } from '../deps.ts';
import { type Advance, advance } from '../store/queue.ts';

export interface AdvanceRequest {
  readonly session: string;
  /** The turn that this run of the session workflow has started or adopted. */
  readonly started: string | null;
}

/** One look of a session at its queue: acknowledges, opens the next turn, or says what to forward. */
export async function advanceSession(deps: Deps, request: AdvanceRequest): Promise<Advance> {
  const { db } = deps.database;
  // A turn may open now: its list of tools is pinned with it.
  if (request.started === null) await deps.tools.refresh?.();
  const { next, stream } = await advance(db, request.session, request.started, (names) => deps.tools.describe(names));
  if (stream !== null) deps.notifier.moved(stream);
  return next;
}
