import type { Decider } from '../ends.ts';
import type { GoalCause } from './goal-state.ts';

/** What is told of a goal; part of `JournalEvent`. */
export type GoalJournalEvent =
  /** Into a status that is not final. */
  | ({ readonly kind: 'goal.moved' } & GoalMove)
  | ({ readonly kind: 'goal.ended' } & GoalMove)
  | {
      readonly kind: 'goal.judged';
      readonly layer: 'goal';
      readonly goal: string;
      readonly source: 'checks' | 'judge' | 'sceptic' | 'stop_gate';
      /** What was found, as a code. */
      readonly found: string;
      /** The text of it, in the store. */
      readonly verdict: string;
    }
  | { readonly kind: 'goal.edited'; readonly layer: 'goal'; readonly goal: string; readonly edit: string }
  | {
      readonly kind: 'goal.wake';
      readonly layer: 'goal';
      readonly goal: string;
      readonly wake: string;
      readonly outcome: 'fired' | 'recorded' | 'superseded';
      readonly why: string;
    };

interface GoalMove {
  readonly layer: 'goal';
  readonly goal: string;
  /** The status, what it is about, and what brought it. */
  readonly reason: string;
  readonly detail: string | null;
  readonly decidedBy: Decider;
  readonly signal: string;
  readonly evidence: GoalCause;
  /** Who asked, where somebody did, and what they said. */
  readonly by: string | null;
  readonly why: string | null;
}
