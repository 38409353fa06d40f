import { describe, expect, test } from 'vitest';
import type { EndReason } from '../../workflows/core/ends.ts';
import { type AnswerPlace, placeOfAnswer, type WaitFacts } from '../../workflows/core/waits.ts';

const asked: WaitFacts = {
  kind: 'permission',
  onExpiry: 'deny',
  isExpired: false,
  isConcluded: false,
  end: null,
  isLast: true,
};
const blocked = { ...asked, onExpiry: 'block', isExpired: true, isConcluded: true, end: 'BLOCKED' } as const;

test.each<[name: string, wait: WaitFacts, place: AnswerPlace]>([
  ['in time', asked, 'in_turn'],
  ['past its time, which the agent was told', { ...asked, isExpired: true }, 'expired'],
  ['past its time, but its turn has not looked yet', { ...asked, onExpiry: 'block', isExpired: true }, 'in_turn'],
  ['its turn is about to end BLOCKED', { ...blocked, end: null }, 'next_input'],
  ['its turn has ended BLOCKED', blocked, 'next_input'],
  ['a later turn has opened', { ...blocked, isLast: false }, 'moved_on'],
  ['a question past its time', { ...asked, kind: 'question', isExpired: true }, 'in_turn'],
  ['a question of a BLOCKED turn', { ...blocked, kind: 'question' }, 'next_input'],
  ['a question, and the session has gone on', { ...blocked, kind: 'question', isLast: false }, 'next_input'],
  ['an event, and the session has gone on', { ...blocked, kind: 'event', isLast: false }, 'next_input'],
])('an answer: %s', (_name, wait, place) => {
  expect(placeOfAnswer(wait)).toBe(place);
});

describe('after any other end nothing is waited for', () => {
  const ends: EndReason[] = ['COMPLETED', 'MAX_TOKENS', 'ABORTED', 'ERROR', 'INTERRUPTED'];
  test.each(ends.flatMap((end) => (['permission', 'question', 'event'] as const).map((kind) => [end, kind] as const)))(
    '%s, %s',
    (end, kind) => {
      expect(placeOfAnswer({ ...blocked, end, kind })).toBe('turn_ended');
    },
  );
});
