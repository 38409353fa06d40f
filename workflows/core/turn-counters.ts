/** How often the turn began its transport retries anew; nothing but a finished step gives `inStep` back. */
export interface Outage {
  readonly inStep: number;
  readonly inTurn: number;
  /** When the retries of a sample were first used up, ms since the epoch; null while samples succeed. */
  readonly sinceMs: number | null;
}

export const NO_OUTAGE: Outage = { inStep: 0, inTurn: 0, sinceMs: null };

/** How outputs that were cut by their cap are dealt with. */
export interface OutputTries {
  /** `refused`: the provider does not take the raised cap, so it is not asked again in this turn. */
  readonly cap: 'usual' | 'raised' | 'refused';
  /** Answers of this turn that went on after a cut, since one ended normally. */
  readonly continued: number;
}

export const FRESH_OUTPUT: OutputTries = { cap: 'usual', continued: 0 };

/** Why there is no structured answer. */
export type AnswerFault = 'invalid' | 'cut' | 'missing' | 'refused';

/** The answer that has to fit a schema. */
export interface AnswerState {
  /** `dropped`: another tool has to be called first, and nothing may stand in its way. */
  readonly schema: 'none' | 'asks' | 'dropped';
  readonly retries: number;
  /** Hash of the message that holds the newest valid answer. */
  readonly message: string | null;
  /** Why asking was given up. */
  readonly fault: AnswerFault | null;
}

export interface ContractState {
  /** Tools of the contract that have succeeded in this turn. */
  readonly succeeded: readonly string[];
  readonly reruns: number;
}

export interface TargetState {
  readonly continuations: number;
  /** Output tokens of the turn when it was last looked at. */
  readonly atTokens: number;
  /** Output tokens between the two looks before that. */
  readonly lastGain: number;
}

export const FRESH_TARGET: TargetState = { continuations: 0, atTokens: 0, lastGain: 0 };

/** The same batch of calls, step after step. */
export interface Repeats {
  /** Of the newest batch: hash of tools and final arguments. */
  readonly batch: string | null;
  readonly tier: 'readers' | 'others';
  readonly times: number;
}

export const NO_REPEATS: Repeats = { batch: null, tier: 'others', times: 0 };

/** Budgets of what is done when the context does not fit; a nudge, a gate or a rerun gives none of them back. */
export interface ContextTries {
  /** Tries of the compaction at hand that failed in passing. */
  readonly failed: number;
  /** How often the text of the compaction at hand was halved, since even the request for a summary was too long. */
  readonly shrinks: number;
  /** Compactions in a row that freed too little, or failed. */
  readonly ineffective: number;
  /** The head whose compaction was tried in vain. */
  readonly brokenAt: string | null;
  /** Whether the provider's word that it does not fit was answered with a compaction since the last success. */
  readonly overflow: 'free' | 'taken';
  readonly images: 'shown' | 'stripped';
}

export const FRESH_CONTEXT: ContextTries = {
  failed: 0,
  shrinks: 0,
  ineffective: 0,
  brokenAt: null,
  overflow: 'free',
  images: 'shown',
};

/** How often the stop gate was asked in this turn, and how often it blocked. */
export interface StopGateCount {
  readonly asks: number;
  readonly blocks: number;
}
