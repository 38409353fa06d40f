import type { Decider, End } from '../ends.ts';

/** Why a goal rests until somebody, or some time, wakes it. */
export type PausedBy = 'user' | 'backoff' | 'no_progress' | 'infrastructure' | 'refusal';

/** What a goal lacks that no time brings. */
export type BlockedOn =
  | 'external_dependency'
  | 'same_blocker'
  | 'context_limit'
  | 'invalid_request'
  | 'context_unusable'
  | 'internal'
  | 'unknown_outcome'
  | 'session_closed';

export type GoalLimitName = 'turns' | 'tokens' | 'usd' | 'running_ms';

/** Of these a turn may lend its sub-agents some. */
export type LentLimit = Extract<GoalLimitName, 'tokens' | 'usd'>;

/**
 * What a goal waits for: a time, an event by name (its hash), or an answer that one of its calls still waits for, as
 * long as that can be given.
 */
export type AwaitedBy =
  | { readonly on: 'time'; readonly untilMs: number }
  | { readonly on: 'event'; readonly event: string; readonly untilMs: number | null }
  | { readonly on: 'answer'; readonly untilMs: number };

/** One try at judging a turn: the goal's own checks, the judge, its sceptics, the stop gate. */
export type Judging =
  | { readonly kind: 'checks' }
  | { readonly kind: 'judge'; readonly checks: 'failed' | 'none'; readonly failures: number }
  | { readonly kind: 'doubt'; readonly approvals: number; readonly refutals: number; readonly failures: number }
  /** `by`: who found the goal complete. */
  | { readonly kind: 'stop_gate'; readonly by: 'checks' | 'sceptics' };

/** What an active goal is about. `notBeforeMs`, `againMs`: ms since the epoch. */
export type Doing =
  | { readonly kind: 'due'; readonly notBeforeMs: number }
  /** The session is busy, or somebody waits there: the next end of a turn, or the time, looks again. */
  | { readonly kind: 'yielding'; readonly againMs: number }
  | { readonly kind: 'running'; readonly round: number }
  | AtJudging
  | Lent;

export interface AtJudging {
  readonly kind: 'judging';
  readonly turn: JudgedTurn;
  readonly stage: Judging;
}

/** What it would need is lent to sub-agents that still run: some that comes back, or the time, looks again. */
export interface Lent {
  readonly kind: 'lent';
  readonly limit: LentLimit;
  /** How much was lent, of tokens or micro-USD. */
  readonly held: number;
  readonly againMs: number;
  /** What goes on then; null: the next round. */
  readonly judging: AtJudging | null;
}

/** A turn as far as judging and the brakes need it. */
export interface JudgedTurn {
  readonly turn: string;
  /** Hash of what it said last. */
  readonly reply: string;
  /** Whether any of its calls acted on the world. */
  readonly acted: boolean;
  readonly claim: Claim | null;
  /** A pause had cut its judging: what was asked before it may be on the bill already. */
  readonly isAgain?: true;
}

/** The model's own word, by its tool; a claim to be judged. */
export type Claim =
  | { readonly kind: 'complete' }
  | { readonly kind: 'blocked'; readonly blocker: string }
  | { readonly kind: 'waiting'; readonly awaited: AwaitedBy };

export type GoalStatus =
  | { readonly kind: 'active'; readonly doing: Doing }
  | { readonly kind: 'waiting'; readonly awaited: AwaitedBy }
  /** `untilMs`: when it wakes by itself. */
  | { readonly kind: 'paused'; readonly by: 'backoff' | 'infrastructure'; readonly untilMs: number }
  | { readonly kind: 'paused'; readonly by: 'no_progress' | 'refusal' }
  /** `unjudged`: what it has cut. */
  | { readonly kind: 'paused'; readonly by: 'user'; readonly unjudged?: AtJudging }
  | { readonly kind: 'blocked'; readonly on: BlockedOn }
  | { readonly kind: 'budget_limited'; readonly limit: GoalLimitName }
  | { readonly kind: 'complete' }
  | { readonly kind: 'cancelled' };

/** `null`: no such limit. Money is in micro-USD, times in ms. */
export interface GoalBudget {
  readonly turns: number;
  readonly tokens: number;
  readonly microUsd: number | null;
  readonly runningMs: number;
}

export interface GoalSpent {
  readonly turns: number;
  readonly tokens: number;
  readonly microUsd: number;
  readonly runningMs: number;
}

/** Counters that a resume sets back; money that was spent is not among them. */
export interface Brakes {
  /** Before the next round; doubled while nothing changes. */
  readonly gapMs: number;
  readonly lastReply: string | null;
  /** Evidence of the last checks. */
  readonly lastEvidence: string | null;
  /** Turns in a row without progress. */
  readonly idleTurns: number;
  readonly lastGap: string | null;
  readonly lastBlocker: string | null;
  readonly sameBlocker: number;
  /** Turns in a row that their steps or their time ended. */
  readonly cutTurns: number;
  /** Ends in a row on what is away. */
  readonly outages: number;
}

export const FRESH_BRAKES = (gapMs: number): Brakes => ({
  gapMs,
  lastReply: null,
  lastEvidence: null,
  idleTurns: 0,
  lastGap: null,
  lastBlocker: null,
  sameBlocker: 0,
  cutTurns: 0,
  outages: 0,
});

/** Why a goal changed its status. */
export type GoalCause =
  | { readonly name: 'turn_end'; readonly reason: End['reason']; readonly detail: End['detail'] }
  | { readonly name: 'checks' | 'judge' | 'sceptics' | 'stop_gate' | 'claim' | 'time' | 'created' }
  /** The machine that has the goal's files was not there to look. */
  | { readonly name: 'workspace_away' }
  | { readonly name: 'judge_failed'; readonly tries: number }
  /** One more request may cost so much, and so much is left. */
  | { readonly name: 'reserve'; readonly limit: GoalLimitName; readonly needed: number; readonly left: number }
  | { readonly name: 'same_gap' | 'no_progress'; readonly times: number }
  | { readonly name: 'limit'; readonly limit: GoalLimitName; readonly allowed: number; readonly used: number }
  | { readonly name: 'command'; readonly id: string }
  | { readonly name: 'wake'; readonly id: string }
  | { readonly name: 'session'; readonly state: 'closed' | 'directive_withdrawn' };

/** What has to be told outside, in this order, each once: `n` counts them. */
export type GoalFact = { readonly n: number } & (
  | {
      readonly kind: 'moved';
      readonly to: GoalStatus;
      readonly cause: GoalCause;
      readonly decidedBy: Decider;
      readonly turn: string | null;
    }
  | {
      readonly kind: 'wake_settled';
      readonly wake: string;
      readonly outcome: 'fired' | 'recorded' | 'superseded';
      readonly why: string;
    }
  /** It came while the goal was at work; nothing but the copy of the state tells of it. */
  | { readonly kind: 'wake_remembered'; readonly wake: string }
  | { readonly kind: 'edited'; readonly edit: string }
  /** The directive of a round that has not begun is not wanted any more. */
  | { readonly kind: 'withdrawn'; readonly round: number }
  /** A cancelled goal takes its newest round with it, be it queued or running. */
  | { readonly kind: 'turn_cancelled'; readonly command: string }
);

export interface CameWake {
  readonly id: string;
  /** Of an event by name: its hash. */
  readonly event: string | null;
  /** `session`: reported to the goal's session, and nothing to a goal that does not wait for it. */
  readonly to: 'goal' | 'session';
}

/** The whole goal: references and counters, no text. */
export interface GoalState {
  readonly status: GoalStatus;
  readonly budget: GoalBudget;
  readonly spent: GoalSpent;
  /** What of the budget is lent to sub-agents that still run. */
  readonly held: { readonly tokens: number; readonly microUsd: number };
  /** Number of the last turn that ended before the goal began: those after it are on its bill. */
  readonly sinceTurn: number;
  /** Rounds whose directive was queued. */
  readonly rounds: number;
  /** The newest turn of the session that was counted; its number, and its id. */
  readonly seenTurn: { readonly n: number; readonly turn: string } | null;
  readonly brakes: Brakes;
  readonly sceptics: number;
  /** Wakes that fell due while the goal was at work: the first one for each event. */
  readonly pendingWakes: readonly CameWake[];
  /** The newest verdict, in the store: the next directive quotes it. */
  readonly verdict: string | null;
  readonly facts: readonly GoalFact[];
  readonly nextFact: number;
  /** Words that something lies in the store, and how many of them have been looked after. */
  readonly heard: number;
  readonly looked: number;
  /** Newest commands: the same id again gets the same answer. */
  readonly commands: readonly { readonly id: string; readonly answer: string }[];
  readonly atMs: number;
}

export function isFinal({ kind }: GoalStatus): boolean {
  return kind === 'complete' || kind === 'cancelled';
}
