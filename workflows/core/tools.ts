/** What a tool call does to the world (design: effects). */
export type Effect = 'none' | 'idempotent' | 'keyed' | 'once';

/** Where a call runs: acting on the world is an activity, waiting is a timer, a sub-agent is a child. */
export type Runs = 'activity' | 'wait' | 'child';

/** What to do with an effect whose outcome stays unknown after reconciling. */
export type OnUnknown = 'ask' | 'tell' | 'end';

/**
 * How a call touches a resource. Since paths are told apart by their hashes only, whoever writes in a folder says
 * so for each folder above (`write_below`), and whoever reads all of one (`read_tree`) conflicts with that.
 */
export type LockMode = 'read' | 'write' | 'read_tree' | 'write_below';

/** A resource that a call touches. The key is a keyed hash, so a history never shows a path. */
export interface LockKey {
  readonly key: string;
  readonly mode: LockMode;
}

/**
 * What became of a call before it could run: `run` it, ask the `gate` first, or it is `answered`
 * already (unknown tool, bad arguments, cut by the output limit) and its result is in the store.
 */
export type Verdict = 'run' | 'gate' | 'answered';

/** One call of one assistant message, as small as a workflow history wants it. */
export interface CallRef {
  readonly ordinal: number;
  readonly tool: string;
  readonly runs: Runs;
  readonly effect: Effect;
  readonly argsHash: string;
  readonly locks: readonly LockKey[];
  readonly verdict: Verdict;
  /** It is made to be called again and again. */
  readonly polling?: true;
  /** A reader that answers within moments. */
  readonly quick?: true;
  /** Set where the tool can take a call back. */
  readonly undo?: 'declared';
}

/** A call whose outcome nobody knows: a person is asked, until then. */
export interface OutcomeAsked {
  readonly approval: string;
  /** Ms since the epoch. */
  readonly untilMs: number;
}

/** How one call came back; its text is in the store. */
export type CallStatus =
  | 'ok'
  | 'error'
  /** never started: the batch was cut before its turn came */
  | 'not_started'
  /** cut while it ran, and known to have had no effect */
  | 'stopped'
  /** cut or lost while it ran: what it did to the world is not known */
  | 'unknown'
  /** unknown, and its tool says that the turn must end on it */
  | 'unknown_ends_turn'
  /** refused by plan, hook, rule or policy, or by a person: it never ran */
  | 'denied'
  /** not started, because of a person’s answer to an earlier call of the batch */
  | 'fused'
  /** nobody has approved it yet: the turn ends BLOCKED, and a late yes may still have it made */
  | 'blocked_on_approval'
  /** a wait that is not over, or a report of the model: the turn ends BLOCKED on a person's answer */
  | 'blocked_on_input'
  /** the same, on something outside that is to happen */
  | 'blocked_on_event';
