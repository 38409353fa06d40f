import { openPullRequestTool } from '../../activities/tools/open-pull-request.ts';
import { type Config, resolveConfig } from '../../worker/config/load.ts';
import type { Boundary } from './kill-at.ts';

/** What a worker of a forge run is told on its command line. */
export interface ForgeOrder {
  readonly folder: string;
  readonly taskQueue: string;
  readonly providerUrl: string;
  readonly forgeUrl: string;
  readonly canLookUp: boolean;
  /** Somebody watches who can be asked. */
  readonly attended: boolean;
  readonly servers: { readonly temporalAddress: string; readonly databaseUrl: string };
  readonly dieAt: Boundary | null;
}

/** As long as the forge of these tests may still be working on a lost request, and a bit. */
export const SETTLE_AFTER_MS = 3_000;
/** After this the tool gives a request up. */
export const REQUEST_MS = 1_000;

export function forgeConfig(order: Omit<ForgeOrder, 'dieAt'>): Config {
  const { folder, taskQueue, servers } = order;
  const tool = openPullRequestTool({
    baseUrl: order.forgeUrl,
    tokenEnv: null,
    canLookUp: order.canLookUp,
    settleAfterMs: SETTLE_AFTER_MS,
    requestMs: REQUEST_MS,
  });
  const config = resolveConfig(
    {
      agents: [
        {
          name: 'tester',
          model: 'scripted',
          provider: 'scripted',
          instructions: 'You are tested.',
          tools: [tool.name],
          attended: order.attended,
        },
      ],
      tools: [tool],
      providers: { scripted: { baseUrl: order.providerUrl, apiKeyEnv: null } },
      taskQueue,
    },
    null,
  );
  return { ...config, ...servers, home: `${folder}/home`, workspaceRoot: `${folder}/workspaces` };
}
