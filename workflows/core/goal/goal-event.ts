import type { End } from '../ends.ts';
import type { AwaitedBy, CameWake, Claim, GoalBudget, LentLimit } from './goal-state.ts';

/** What a request of a judge, or turns, have used. */
export interface GoalUsage {
  readonly tokens: number;
  readonly microUsd: number;
}

/** Everything since the goal began, as the rows of requests have it. */
export interface GoalBill {
  /** By turns, by those who judged them, and by sub-agents that have ended. */
  readonly spent: GoalUsage;
  /** Lent to sub-agents that still run. */
  readonly held: GoalUsage;
}

/** The end of a turn of the goal's session, as small as a history wants it. */
export interface EndedTurn {
  readonly turn: string;
  /** Its number in the session: turns end in this order. */
  readonly n: number;
  /** The round whose directive it was; null: somebody else's turn. */
  readonly round: number | null;
  readonly end: Pick<End, 'reason' | 'detail' | 'decidedBy'>;
  /** What a call of it still waits for, where it ended BLOCKED. */
  readonly waitsFor: AwaitedBy | null;
  /** The budget that ended it; null where none did. */
  readonly limit: LentLimit | null;
  readonly runningMs: number;
  readonly reply: string;
  readonly acted: boolean;
  readonly claim: Claim | null;
}

/** No answer: none that fits, after all that may be tried within one request; or what it may cost at most is not left. */
type Unanswered =
  | { readonly kind: 'unusable' }
  | {
      readonly kind: 'unaffordable';
      readonly limit: LentLimit;
      readonly needed: number;
    };

export type JudgeVerdict =
  | { readonly kind: 'continue'; readonly gap: string; readonly verdict: string }
  | { readonly kind: 'candidate_complete'; readonly verdict: string }
  | { readonly kind: 'blocked'; readonly blocker: string; readonly verdict: string }
  | { readonly kind: 'waiting'; readonly awaited: AwaitedBy; readonly verdict: string }
  | Unanswered;

export type ScepticVote =
  | { readonly kind: 'approve'; readonly verdict: string }
  | { readonly kind: 'refute'; readonly confidence: 'high' | 'low'; readonly verdict: string }
  | Unanswered;

export type GoalCommand = { readonly id: string } & (
  | { readonly kind: 'pause' | 'resume' | 'cancel' }
  /** `wish`: a new objective, or new checks, lie in the store under the command's id. */
  | { readonly kind: 'edit'; readonly budget: Partial<GoalBudget>; readonly wish: 'changed' | 'same' }
);

/** What a goal can hear. `atMs` is ms since the epoch. */
export type GoalEvent = { readonly atMs: number } & (
  | { readonly kind: 'noticed' }
  /** `upTo`: the notices that had been heard when the look began. */
  | {
      readonly kind: 'looked';
      readonly upTo: number;
      readonly turns: readonly EndedTurn[];
      readonly bill: GoalBill;
      readonly wakes: readonly CameWake[];
      /** Wakes whose event a call of the session has taken. */
      readonly taken: readonly string[];
      /** The newest round whose directive was queued, by the store's own count. */
      readonly begun: number;
      /** The round whose directive somebody took out of the queue. */
      readonly withdrawn: number | null;
    }
  | { readonly kind: 'directed'; readonly round: number; readonly outcome: 'queued' | 'busy' | 'closed' }
  | {
      readonly kind: 'checked';
      /** `away`: no machine that has the files was there. */
      readonly outcome: 'passed' | 'failed' | 'none' | 'away';
      /** Hash of what they said. */
      readonly evidence: string;
      /** What they said, in the store; null: there are none. */
      readonly verdict: string | null;
    }
  | { readonly kind: 'judged'; readonly verdict: JudgeVerdict; readonly usage: GoalUsage }
  | { readonly kind: 'doubted'; readonly vote: ScepticVote; readonly usage: GoalUsage }
  | { readonly kind: 'gated'; readonly answer: 'pass' | 'block' | 'stop' | 'away'; readonly verdict: string | null }
  | { readonly kind: 'time' }
  /** A budget was found used up before the next round. */
  | { readonly kind: 'limited' }
  | { readonly kind: 'commanded'; readonly command: GoalCommand }
  | { readonly kind: 'recorded'; readonly upTo: number }
);
