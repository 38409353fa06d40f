import { z } from 'zod';
import { AGENT_TOOLS } from '../../workflows/core/agents.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import { defineWait } from './define-tool.ts';

const MICRO = 1_000_000;

const input = z.strictObject({
  agent: z.string().trim().min(1).describe('Which agent.'),
  prompt: z
    .string()
    .trim()
    .min(1)
    .max(POLICY.subAgents.promptChars)
    .describe('All that it needs to know: it sees nothing of this conversation.'),
  background: z.boolean().optional().describe('Go on at once; its end is told later. False if left out.'),
  maxTokens: z.number().int().min(1).optional().describe('Tokens that it may use, out of what you have left.'),
  maxUsd: z.number().positive().max(MICRO).optional().describe('The same in US dollars.'),
});

export const spawnAgent = defineWait<z.output<typeof input>>({
  name: AGENT_TOOLS.spawn,
  description:
    'Gives a piece of work to another agent, which works in the same files, and returns how it ended and what it said last. ' +
    'Several calls in one message run side by side.',
  input,
  runs: 'child',
  wait: ({ agent, prompt, background = false, maxTokens = null, maxUsd }) => ({
    kind: 'agent',
    agent,
    prompt,
    mode: background ? 'background' : 'foreground',
    maxTokens,
    maxMicroUsd: maxUsd === undefined ? null : Math.round(maxUsd * MICRO),
  }),
});
