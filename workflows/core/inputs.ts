/** What reaches a session from outside a turn. */
export type InputKind = 'prompt' | 'steer' | 'send_now' | 'call_back' | 'agent_end' | 'directive' | 'wake';

/** Two classes, first in first out in each: people first. */
export type InputClass = 'people' | 'wake_up';

export type InputStatus = 'queued' | 'forwarded' | 'consumed' | 'dropped_by_cancel' | 'withdrawn' | 'hook_blocked';

/** Kinds that a running turn takes in at its next safe point; the others wait for idle. */
export const JOINS_RUNNING_TURN: readonly InputKind[] = ['steer', 'send_now', 'call_back', 'agent_end'];

/** What people say to a running turn: hooks may keep it back, and a person's cancel drops what the turn has not taken in. */
export const SAID_TO_TURN: readonly InputKind[] = ['steer', 'send_now'];

/** Results of background work: after a person stopped the turn they wait for the next one, and start none. */
export const BACKGROUND: readonly InputKind[] = ['call_back', 'agent_end'];

export function classOf(kind: InputKind): InputClass {
  return kind === 'directive' || kind === 'wake' ? 'wake_up' : 'people';
}
