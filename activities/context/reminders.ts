import type { Reminder } from '../../workflows/core/turn-state.ts';

/** The runtime's own fixed sentences to the model, by code. */
export const REMINDER_TEXTS: Readonly<Record<Reminder, string>> = {
  empty_reply: 'Your last reply was empty. Answer now, or call a tool.',
  output_cut:
    'Your reply was cut by the output limit. Go on directly where it stopped, without apology or recap, in smaller pieces.',
  answer_cut: 'Your answer was cut by the output limit and is not kept. Give the whole of it again, shorter.',
  calls_missing: 'You announced tool calls, and none came. Make them now, or give your answer.',
  structured_output: 'Your answer does not fit the schema that was asked for. Give the whole answer again.',
  contract: 'A tool that this task requires has not succeeded yet. Call it before you finish.',
  todo: 'There are unfinished todos. Finish them, or mark what is done, or say why they can’t be.',
  stop_gate: 'The work was found not to be finished yet. Go on.',
  token_target: 'There is budget left. Go on with what would improve the result most.',
  identical_steps: 'You are repeating the same calls. Do something different, or finish.',
  images_stripped:
    'The provider refused the request as too large. The images before this point are not shown to you any more.',
  rewound:
    'The conversation was taken back to this point; the world was not. The calls below were made after it and are not shown to you. What they did is still there: look before you do any of it again.',
  forked:
    'This conversation was forked here and goes on beside the other one, in the same workspace. The calls below were made after this point and are not shown to you. What they did is still there: look before you do any of it again.',
};

/** The sentence with what it is about, as far as the store knows it. */
export function reminderText(code: Reminder, details: readonly string[]): string {
  return [REMINDER_TEXTS[code], ...details].join('\n');
}
