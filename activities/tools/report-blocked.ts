import { z } from 'zod';
import { defineWait } from './define-tool.ts';

const input = z.strictObject({
  on: z.enum(['person', 'event']).describe('Whether a person or something else has to act.'),
  what: z.string().trim().min(1).max(4_000).describe('What is needed, and from whom.'),
});

export const reportBlocked = defineWait<z.output<typeof input>>({
  name: 'report_blocked',
  description: 'Ends the work here because it can’t go on without somebody or something else. Say what is needed.',
  input,
  wait: ({ on, what }) => ({ kind: 'report', on: on === 'person' ? 'question' : 'event', text: what }),
});
