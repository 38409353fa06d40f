import type { InputAnswer } from './inputs.ts';
import type { SessionArchived, SessionRewound } from './sessions.ts';

type RefusedInput = Exclude<InputAnswer, { kind: 'changed' | 'before' }>;

/** Why an input can't be changed, and what to do, in one sentence. */
export function refusedInputWords(refused: RefusedInput): string {
  switch (refused.kind) {
    case 'locked':
      return `${refused.by} edits it until ${refused.until}: try again then.`;
    case 'not_written':
      return `It is a ${refused.source.replace('_', ' ')}, not something that a person wrote, so it can't be changed.`;
    case 'taken':
      return takenWords(refused);
  }
}

function takenWords({ status, turn, by }: RefusedInput & { kind: 'taken' }): string {
  const who = by === null ? '' : ` by ${by}`;
  switch (status) {
    case 'queued':
    case 'forwarded':
      return `Turn ${turn ?? ''} has it already, so it can't be changed any more: cancel the turn, or send another input.`;
    case 'consumed':
      return `Turn ${turn ?? ''} has heard it, so it can't be changed any more: send another input.`;
    case 'left_over':
      return "A turn has had it before, so its text can't be changed any more: withdraw it, and send another one.";
    case 'withdrawn':
      return `It was withdrawn${who}: send it as another input.`;
    case 'dropped_by_cancel':
      return `It was dropped when its turn was cancelled${who}: send it as another input.`;
    case 'hook_blocked':
      return 'A hook kept it back: send it as another input.';
  }
}

/** Why a session can't be rewound or archived now. */
export function busyWords(
  busy: Extract<SessionRewound | SessionArchived, { kind: 'busy' | 'waiting' | 'goal_open' }>,
): string {
  if (busy.kind === 'goal_open') return `Goal ${busy.goal} works in it and is not final: cancel the goal first.`;
  if (busy.kind === 'busy') return `Turn ${busy.turn} is open: wait for its end, or cancel it first.`;
  const wait = busy.inputs === 1 ? '1 input waits' : `${busy.inputs} inputs wait`;
  return `${wait} in its queue: let a turn have them, or withdraw them first.`;
}

export const NO_MESSAGE =
  'It has no such message, or more than one begins so: name one by 8 or more digits of its hash, or `start`.';
