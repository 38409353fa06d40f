import { z } from 'zod';
import { AGENT_TOOLS } from '../../workflows/core/agents.ts';
import { defineWait } from './define-tool.ts';

const input = z.strictObject({
  ids: z.array(z.string().min(1)).min(1).optional().describe('Which ones; if left out, all that you have.'),
  for: z.enum(['any', 'all']).optional().describe('Whether one end is enough; all if left out.'),
  seconds: z.number().int().min(1).max(86_400).optional().describe('How long to wait at most.'),
});

export const waitAgents = defineWait<z.output<typeof input>>({
  name: AGENT_TOOLS.wait,
  description:
    'Waits for sub-agents in the background and returns how they ended and what they said last. A message from a person ends the wait.',
  input,
  wait: ({ ids = null, for: what = 'all', seconds }) => ({
    kind: 'agents',
    ids,
    for: what,
    forMs: seconds === undefined ? null : seconds * 1_000,
  }),
});
