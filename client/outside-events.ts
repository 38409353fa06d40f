import { newId } from '../activities/store/ids.ts';
import { storeOutsideEvent } from '../activities/store/outside-events.ts';
import { closedBy } from '../activities/store/session-life.ts';
import { type ApprovalDeps, tellAnswer } from './approvals.ts';
import { onStore, SessionClosed } from './faults.ts';
import { refuseBadId } from './own-id.ts';
import { sessionOf } from './session-of.ts';

/** Something that happened outside, for whoever waits for it by its name. */
export interface OutsideEvent {
  readonly name: string;
  /** The same id again is the same event; one of its own if left out. */
  readonly id?: string | undefined;
  /** What the agent is told of it. */
  readonly text?: string | undefined;
  readonly by: string;
}

export interface ReportedEvent {
  readonly id: string;
  /** False: this id had brought it before. */
  readonly isNew: boolean;
  /** How many waits it ended; 0: it is kept for one that the running turn may still begin. */
  readonly waits: number;
  /** The session's goal, which hears of it: it goes on if it waits for that name. */
  readonly goal: string | null;
}

/**
 * Delivers an event to every open wait for its name; `of` is a session or a job of it. Null: there is no such thing.
 * Throws BadId and SessionClosed.
 */
export async function reportEvent(
  deps: ApprovalDeps,
  at: { readonly tenant: string; readonly of: string },
  event: OutsideEvent,
): Promise<ReportedEvent | null> {
  refuseBadId(event.id);
  const session = await onStore(() => sessionOf(deps.db, at));
  if (session === null) return null;
  const closed = await onStore(() => closedBy(deps.db, session));
  if (closed !== null) throw new SessionClosed(closed);
  const { id = newId('evt'), name, text = '', by } = event;
  const stored = await onStore(() => storeOutsideEvent(deps.db, { session, id, name: name.trim(), text, by }));
  await Promise.all(stored.answered.map((answered) => tellAnswer(deps, answered)));
  if (stored.goal !== null) await deps.engine.lookGoal(stored.goal);
  const { isNew, waits, goal } = stored;
  return { id, isNew, waits, goal };
}
