import { z } from 'zod';
import { defineTool } from '../../activities/tools/define-tool.ts';
import { type Config, resolveConfig } from '../../worker/config/load.ts';

/** What the worker of a long turn is told on its command line. */
export interface LongOrder {
  readonly folder: string;
  readonly taskQueue: string;
  readonly providerUrl: string;
  readonly temporalAddress: string;
  readonly databaseUrl: string;
  readonly steps: number;
}

/** A page of a file that never ends: no two are alike. */
const look = defineTool({
  name: 'look',
  description: 'Shows a page.',
  input: z.strictObject({ page: z.int(), why: z.string() }),
  effect: 'none',
  run: ({ page }) => {
    const line = `page ${page} of the long file: `;
    return Promise.resolve({ isError: false, text: `${line.repeat(6)}\n${line.repeat(130)}` });
  },
});

export function longConfig({ folder, taskQueue, providerUrl, steps, ...servers }: LongOrder): Config {
  const limits = { maxSteps: steps + 1, maxTokens: null, maxRunningMs: null };
  const agent = { name: 'reader', model: 'scripted', provider: 'scripted', instructions: 'Read on.', attended: true };
  const config = resolveConfig(
    {
      agents: [{ ...agent, tools: ['look'], limits }],
      tools: [look],
      providers: { scripted: { baseUrl: providerUrl, apiKeyEnv: null } },
      taskQueue,
    },
    null,
  );
  return { ...config, ...servers, home: `${folder}/home`, workspaceRoot: `${folder}/workspaces` };
}
