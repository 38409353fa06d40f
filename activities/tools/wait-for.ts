import { z } from 'zod';
import { POLICY } from '../../workflows/core/policy.ts';
import { defineWait } from './define-tool.ts';

const input = z
  .strictObject({
    event: z.string().trim().min(1).max(200).optional().describe('What is to happen, such as the end of a CI run.'),
    seconds: z
      .number()
      .int()
      .min(1)
      .max(86_400)
      .optional()
      .describe('How long to wait at most; alone: exactly so long.'),
  })
  .refine(({ event, seconds }) => event !== undefined || seconds !== undefined, 'name an event, or seconds, or both');

export const waitFor = defineWait<z.output<typeof input>>({
  name: 'wait_for',
  description:
    'Waits for an event that somebody will report, for a number of seconds, or for whichever comes first (a day at most). ' +
    'A message from a person ends the wait.',
  input,
  wait: ({ event, seconds }, nowMs) => {
    const forMs = seconds === undefined ? POLICY.waits.waitForMs : seconds * 1_000;
    return event === undefined ? { kind: 'time', untilMs: nowMs + forMs } : { kind: 'event', text: event, forMs };
  },
});
