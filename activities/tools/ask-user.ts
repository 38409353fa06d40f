import { z } from 'zod';
import { POLICY } from '../../workflows/core/policy.ts';
import { defineWait } from './define-tool.ts';

const input = z.strictObject({
  question: z
    .string()
    .trim()
    .min(1)
    .max(4_000)
    .describe('What you need to know, with what the person needs to answer it.'),
});

export const askUser = defineWait<z.output<typeof input>>({
  name: 'ask_user',
  description:
    'Asks a person and waits ten minutes for the answer. If none comes, the work stops here until it does. ' +
    'Ask only what you can’t find out yourself.',
  input,
  wait: ({ question }) => ({ kind: 'question', text: question, forMs: POLICY.waits.askUserMs }),
});
