import { claimInput } from '../goal/claim.ts';
import type { z } from 'zod';
import { answering, success } from './answer.ts';
import { defineTool } from './define-tool.ts';

/** The claim lies in the call itself; the goal reads it when the turn has ended. */
export const updateGoal = defineTool<z.output<typeof claimInput>>({
  name: 'update_goal',
  description:
    'Says how the goal of this session stands: complete (a claim, which is judged), blocked, or waiting until a time or ' +
    'for an event. The last call counts. End your turn after it.',
  input: claimInput,
  effect: 'none',
  quick: true,
  run: ({ status }, context) =>
    answering('update_goal', context, () =>
      Promise.resolve(success(`Noted: ${status}. It is judged when your turn has ended.`, context.resultChars)),
    ),
});
