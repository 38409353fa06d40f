import { z } from 'zod';
import { answering, Refused, success } from './answer.ts';
import { defineTool } from './define-tool.ts';

const input = z.strictObject({});

export const getGoal = defineTool<z.output<typeof input>>({
  name: 'get_goal',
  description: 'Shows the goal of this session: its objective, its status, and what is left of its budget.',
  input,
  effect: 'none',
  quick: true,
  run: (_, context) =>
    answering('get_goal', context, async () => {
      const goal = await context.goal?.();
      if (!goal) throw new Refused('This session has no open goal.', 'no_goal');
      return success(goal, context.resultChars);
    }),
});
