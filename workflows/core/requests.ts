import type { CompactionCause } from './compact-outcome.ts';
import type { Answered } from './ending-checks/structured-output.ts';
import type { End } from './ends.ts';
import type { Effect } from './tools.ts';
import type { Reminder } from './turn-state.ts';
import type { Transition } from './transition.ts';

/** Which engine run asks; the store's fence reads it, the workflow never branches on it. */
export interface RunIdentity {
  readonly turn: string;
  readonly run: string;
  readonly isReset: boolean;
}

/** `ask`; or, where an attempt was cut and has not told what became of it: settle that, and ask nobody. */
export type Purpose = 'ask' | 'settle';

/** What one `sample` activity is given: references and numbers only. */
export interface SampleRequest {
  readonly fence: RunIdentity;
  readonly purpose: Purpose;
  readonly agent: string;
  readonly tools: string;
  readonly step: number;
  readonly resample: number;
  readonly head: string;
  /** How many results of the calls of `head` are appended first. */
  readonly results: number;
  readonly inputs: readonly string[];
  readonly reminders: readonly Reminder[];
  readonly transition: Transition;
  /** Whether a model that repeats itself without end is stopped. */
  readonly watchRepetition: boolean;
  readonly model: 'primary' | 'fallback';
  readonly outputTokens: number;
  /** What becomes of a text that the cap cuts. */
  readonly onCut: 'drop' | 'keep';
  /** Whether the answer has to fit the turn's schema. */
  readonly schema: 'asked' | 'none';
  readonly contextTokens: number;
  /** False where this very context was tried to be compacted in vain: what still fits is sampled. */
  readonly mayCompact: boolean;
  /** Set where what sub-agents count against the budgets is to be looked up. */
  readonly agents?: 'counted';
}

export interface CompactRequest {
  readonly fence: RunIdentity;
  readonly agent: string;
  readonly tools: string;
  readonly step: number;
  readonly head: string;
  readonly cause: CompactionCause;
  /** How often the text was halved, since the request for its summary was too long. */
  readonly shrinks: number;
  readonly model: 'primary' | 'fallback';
  readonly resample: number;
  readonly contextTokens: number;
}

export interface RunToolRequest {
  readonly fence: RunIdentity;
  /** `settle` is for readers only: what acts is never cut by a message. */
  readonly purpose: Purpose;
  /** The message that asks for the call. */
  readonly assistant: string;
  readonly ordinal: number;
  readonly tool: string;
  readonly effect: Effect;
  readonly argsHash: string;
}

/** The gate judges one call on its final arguments. */
export interface GateRequest {
  readonly fence: RunIdentity;
  readonly assistant: string;
  readonly ordinal: number;
}

/** A look at a waiting call. */
export interface WaitRequest {
  readonly fence: RunIdentity;
  readonly assistant: string;
  readonly ordinal: number;
  /** A message has come: the wait is over whatever it waits for. */
  readonly interrupted: boolean;
  /** The turn is cancelled: what it waits for is stopped, as far as it is its own. */
  readonly cancelled?: true;
}

/** Asks the stop gate whether the turn may end on its last reply. */
export interface StopGateRequest {
  readonly fence: RunIdentity;
  readonly purpose: Purpose;
  /** The reply. */
  readonly head: string;
  /** Which ask of the turn this is, from 1. */
  readonly asks: number;
  /** How often the gate has blocked this turn before. */
  readonly blocks: number;
}

/** What an answered, or expired, approval means for its call. */
export interface DecisionRequest {
  readonly fence: RunIdentity;
  readonly approval: string;
  /** A message that could not wait: where nobody has answered yet, it is the answer. */
  readonly message: string | null;
}

/** Takes a call back that a cancel cut in the middle. */
export interface UndoRequest {
  readonly fence: RunIdentity;
  readonly assistant: string;
  readonly ordinal: number;
  /** How long it may take from now on, ms. */
  readonly forMs: number;
}

export interface EndTurnRequest {
  readonly fence: RunIdentity;
  readonly end: End;
  readonly step: number;
  /** Without what it waited for people and events, ms. */
  readonly runningMs: number;
  readonly answer: Answered | null;
  readonly contract: 'met' | 'unmet' | null;
}
