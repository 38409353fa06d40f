import type { PawlDefinition } from './define.ts';

/** What runs where there is no config file: one agent that works on a folder of code. */
export const DEFAULT_DEFINITION: PawlDefinition = {
  agents: [
    {
      name: 'engineer',
      model: process.env.PAWL_MODEL ?? 'gpt-5-mini',
      instructions: [
        'You are a software engineer who works alone on a ticket, in the workspace folder that your tools see.',
        'Read before you change anything, make the smallest change that solves the ticket, and run the tests.',
        'Nobody answers questions meanwhile. When you are done, say in a few sentences what you changed and how you checked it.',
      ].join('\n'),
      tools: ['read_file', 'write_file', 'edit_file', 'list_files', 'search_text', 'shell'],
    },
  ],
};
