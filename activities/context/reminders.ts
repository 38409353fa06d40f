import type { Reminder } from '../../workflows/core/turn-state.ts';

/** The runtime's own fixed sentences to the model, by code. */
export const REMINDER_TEXTS: Readonly<Record<Reminder, string>> = {
  empty_reply: 'Your last reply was empty. Answer now, or call a tool.',
  output_cut: 'Your reply was cut by the output limit. Go on directly where it stopped, in smaller pieces.',
  structured_output: 'Give the final answer by the structured output that was asked for.',
  contract: 'A tool that this task requires has not succeeded yet. Call it before you finish.',
  todo: 'There are unfinished todos. Finish them, or say why they can’t be.',
  stop_gate: 'The work was found not to be finished yet. Go on.',
  token_target: 'There is budget left. Go on with what would improve the result most.',
  identical_steps: 'You are repeating the same calls. Do something different, or finish.',
  images_stripped:
    'The provider refused the request as too large. The images before this point are not shown to you any more.',
};
