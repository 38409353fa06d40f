import type { EndReason } from './ends.ts';

/** Where the wait of a call stands when somebody's answer comes. */
export interface WaitFacts {
  readonly kind: 'permission' | 'question' | 'event';
  readonly onExpiry: 'deny' | 'block' | 'end';
  /** Its time is over. */
  readonly isExpired: boolean;
  /** Its turn has drawn its conclusion: it does not wait for this any more. */
  readonly isConcluded: boolean;
  /** How its turn ended; null while it is open. */
  readonly end: EndReason | null;
  /** No turn of the session has opened after it. */
  readonly isLast: boolean;
}

export type AnswerPlace =
  /** its turn waits for it */
  | 'in_turn'
  /** its turn ended BLOCKED over it, or is about to: it comes in as an input, and starts the next one */
  | 'next_input'
  /** refused: its time is over, and the agent was told that it was denied */
  | 'expired'
  /** refused: its turn ended in another way */
  | 'turn_ended'
  /** refused: the session has gone on without it, in circumstances that nobody was asked about */
  | 'moved_on';

/** Where an answer goes. An answer in words is always welcome; a yes counts only for the situation it was asked in. */
export function placeOfAnswer(wait: WaitFacts): AnswerPlace {
  const isPermission = wait.kind === 'permission';
  switch (wait.end) {
    case null:
      if (wait.isConcluded) return 'next_input';
      return isPermission && wait.isExpired && wait.onExpiry === 'deny' ? 'expired' : 'in_turn';
    case 'BLOCKED':
      return isPermission && !wait.isLast ? 'moved_on' : 'next_input';
    default:
      return 'turn_ended';
  }
}
