import { openPullRequestTool } from '../../activities/tools/open-pull-request.ts';
import type { AgentDefinition } from '../../worker/config/define.ts';
import { type Config, resolveConfig } from '../../worker/config/load.ts';
import { undoableTools } from './undoable.ts';

/** What every process of a crowd is told on its command line. */
export interface CrowdOrder {
  readonly folder: string;
  readonly taskQueue: string;
  readonly providerUrl: string;
  readonly servers: { readonly temporalAddress: string; readonly databaseUrl: string };
  readonly forge: CrowdForge;
  /** Of a store that de-duplicates by key. */
  readonly storeUrl: string;
}

export interface CrowdForge {
  readonly url: string;
  readonly canLookUp: boolean;
  readonly settleAfterMs: number;
  readonly requestMs: number;
}

/** `alone`: nobody can be asked. `watched`: somebody can. `asks`: of each call. `blocks`: it ends over its questions. */
export type CrowdAgent = 'alone' | 'watched' | 'asks' | 'blocks';

const AGENTS: Readonly<Record<CrowdAgent, Partial<AgentDefinition>>> = {
  alone: {},
  watched: { attended: true },
  asks: { attended: true, permissions: { mode: 'default' } },
  blocks: { attended: true, permissions: { mode: 'default', expiryMs: 200, onExpiry: 'block' } },
};

/** The configuration that all processes of a crowd share. */
export function crowdConfig({ folder, taskQueue, providerUrl, servers, forge, storeUrl }: CrowdOrder): Config {
  const { url: baseUrl, ...options } = forge;
  const own = [openPullRequestTool({ baseUrl, tokenEnv: null, ...options }), ...undoableTools];
  const tools = ['http_request', 'read_file', 'write_file', 'edit_file', 'list_files', ...own.map(({ name }) => name)];
  const common = { model: 'scripted', provider: 'scripted', instructions: 'You are tested.', tools };
  const config = resolveConfig(
    {
      agents: Object.entries(AGENTS).map(([name, agent]) => ({ ...common, ...agent, name })),
      tools: own,
      network: { allow: [new URL(storeUrl).host] },
      providers: { scripted: { baseUrl: providerUrl, apiKeyEnv: null } },
      taskQueue,
    },
    null,
  );
  return { ...config, ...servers, home: `${folder}/home`, workspaceRoot: `${folder}/workspaces` };
}
