import { z } from 'zod';
import { answering, Refused, success } from './answer.ts';
import { defineTool } from './define-tool.ts';

const STATUSES = ['pending', 'in_progress', 'completed'] as const;

const input = z.strictObject({
  todos: z
    .array(
      z.strictObject({
        content: z.string().trim().min(1).max(500).describe('What is to be done, as an order.'),
        status: z.enum(STATUSES),
      }),
    )
    .max(100)
    .describe('The whole list, in order; it takes the place of the one before.'),
});

/** The list is nowhere but in the transcript: the last call of this tool is the state. */
export const todoWrite = defineTool<z.output<typeof input>>({
  name: 'todo_write',
  description:
    'Keeps the list of what is to be done for this task. Send the whole list each time; at most one item is in_progress.',
  input,
  effect: 'none',
  quick: true,
  run: ({ todos }, context) =>
    answering('todo_write', context, () => {
      const count = (status: (typeof STATUSES)[number]) => todos.filter((todo) => todo.status === status).length;
      if (count('in_progress') > 1) {
        throw new Refused(
          'More than one item is in_progress. Work on one at a time and send the list again.',
          'bad_list',
        );
      }
      const twice = todos.find(({ content }, n) => todos.findIndex((other) => other.content === content) !== n);
      if (twice)
        throw new Refused(`The list has "${twice.content}" twice. Send it again with each item once.`, 'bad_list');
      const [open, now, done] = [count('pending'), count('in_progress'), count('completed')];
      const text = `The list is kept: ${done} completed, ${now} in progress, ${open} pending.`;
      return Promise.resolve(success(text, context.resultChars));
    }),
});
