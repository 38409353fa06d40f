import type { End } from '../../workflows/core/ends.ts';
import type { BatchEnd } from '../../workflows/core/journal.ts';
import { isAnswerCall } from '../answer/take-answer.ts';
import type { NewEvent } from '../store/events.ts';
import type { call } from '../store/schema.ts';

type Answered = Pick<typeof call.$inferSelect, 'tool' | 'status' | 'note'>;

const FUSES = ['rejected', 'cancelled', 'message', 'expired'];

/**
 * The batch layer's end row, once for each message that asked for calls: with what comes after it, or with the
 * turn's end. `end` is null where the turn goes on. Null: calls that only handed in an answer are no batch.
 */
export function batchEnded(
  at: { readonly turn: string; readonly assistant: string },
  calls: readonly Answered[],
  end: End | null,
): NewEvent | null {
  if (calls.every(({ tool }) => isAnswerCall({ name: tool }))) return null;
  const how = howItEnded(calls, end);
  return {
    key: `batch/${at.assistant}`,
    turn: at.turn,
    event: { kind: 'batch.ended', layer: 'batch', calls: calls.length, ...how },
  };
}

function howItEnded(calls: readonly Answered[], end: End | null) {
  if (end && wasCut(calls, end)) {
    const { detail, decidedBy, signal } = end;
    return { reason: 'cancelled' satisfies BatchEnd, detail, decidedBy, signal: signal.name } as const;
  }
  if (calls.some(({ status }) => status === 'blocked_on_approval')) {
    return { reason: 'fused' satisfies BatchEnd, detail: 'expired', decidedBy: 'runtime', signal: 'approval' } as const;
  }
  const fuse = calls.find(({ status, note }) => (status === 'denied' || status === 'fused') && isFuse(note))?.note;
  if (fuse) {
    const decidedBy = fuse === 'expired' ? 'runtime' : 'user';
    return { reason: 'fused' satisfies BatchEnd, detail: fuse, decidedBy, signal: 'approval' } as const;
  }
  const reason = 'all_returned' satisfies BatchEnd;
  return { reason, detail: null, decidedBy: 'runtime', signal: reason } as const;
}

/** Something of it never began, or was stopped by what ended the turn. */
function wasCut(calls: readonly Answered[], { reason, signal }: End): boolean {
  if (calls.some(({ status }) => status === null || status === 'not_started')) return true;
  const cuts = reason === 'INTERRUPTED' || signal.name === 'cancel_request';
  return cuts && calls.some(({ status }) => status === 'stopped' || status === 'unknown');
}

function isFuse(note: string | null): boolean {
  return note !== null && FUSES.includes(note);
}
