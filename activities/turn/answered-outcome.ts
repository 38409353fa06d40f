import type { OutcomeAsked } from '../../workflows/core/tools.ts';
import { lookAtOutcome, type OutcomeLook, settledByPerson } from '../store/outcomes.ts';
import { type CallOutcome, failed } from './call-outcome.ts';
import { CUT_TEXTS } from './results.ts';
import type { ToolAttempt } from './tool-attempt.ts';

/** What follows from a question about an attempt: the outcome, more waiting, or that it may be sent again. */
export type Heard =
  | { readonly kind: 'outcome'; readonly outcome: CallOutcome }
  | { readonly kind: 'asked'; readonly asked: OutcomeAsked }
  | 'again';

/** What a person said of an attempt that nobody knows about. Null: nobody was asked. */
export async function hear(
  at: Pick<ToolAttempt, 'deps' | 'owner' | 'call'>,
  attempt: string | null,
): Promise<Heard | null> {
  const look = attempt === null ? null : await lookAtOutcome(at.deps.database.db, at.call.key, attempt);
  if (!look || attempt === null) return null;
  const where = { call: at.call.key, turn: at.owner.id, attempt };
  switch (look.kind) {
    case 'waiting':
      return { kind: 'asked', asked: { approval: look.approval, untilMs: look.untilMs } };
    case 'unanswered':
      return { kind: 'outcome', outcome: unanswered(where, look.approval) };
    case 'answered':
      return look.answer === 'again' ? 'again' : { kind: 'outcome', outcome: answered(where, look.answer, look) };
  }
}

interface Where {
  readonly call: string;
  readonly turn: string;
  readonly attempt: string;
}

/** A person looked: their word settles the effect and is the call's result. */
function answered(
  where: Where,
  answer: 'happened' | 'absent',
  { by, note }: OutcomeLook & { readonly kind: 'answered' },
): CallOutcome {
  const happened = answer === 'happened';
  const text = note ? `${TEXTS[answer]} They add: ${note}` : TEXTS[answer];
  const effect = happened ? 'settled_done' : 'settled_absent';
  return {
    status: happened ? 'ok' : 'error',
    result: happened ? { isError: false, text, note: 'confirmed' } : failed(text, 'absent'),
    effect,
    heldBy: where.attempt,
    events: [settledByPerson(where, effect, by)],
  };
}

const TEXTS = {
  happened: 'A person looked and confirms that this took effect; its own answer was lost.',
  absent: 'A person looked and found that this did not take effect. It had no effect.',
} as const;

/** Nobody answered in time: the turn ends over it, and the question stays for whoever looks later. */
function unanswered({ call, turn, attempt }: Where, approval: string): CallOutcome {
  return {
    status: 'unknown_ends_turn',
    result: failed(CUT_TEXTS.unknown, 'unknown_outcome'),
    effect: 'unknown',
    heldBy: attempt,
    events: [
      {
        key: `unanswered/${approval}`,
        turn,
        event: { kind: 'effect.unanswered', layer: 'batch', approval, key: call },
      },
    ],
  };
}
