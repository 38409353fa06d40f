import type { Logger } from 'pino';
import type { Tool } from '../tools/define-tool.ts';
import { Link, type LinkStatus } from './link.ts';
import type { RemoteTool } from './listing.ts';
import { remoteTool } from './remote-tool.ts';
import { checkServerName, type McpServers } from './servers.ts';

export interface McpHubSettings {
  readonly log?: Pick<Logger, 'warn' | 'info'>;
  /** A server came, went, or changed its list; it takes effect at the next `list`. */
  onChange?(server: string): void;
}

export interface McpHub {
  readonly servers: readonly string[];
  /** The tools of every server that can be reached now, sorted by name. Ask once before each turn. */
  list(): Promise<readonly Tool[]>;
  status(): Readonly<Record<string, LinkStatus>>;
  /** Ends the servers that are ours, and leaves the others. */
  close(): Promise<void>;
}

/** Nothing is started before the first `list`. Throws on a server name that can't be used. */
export function createMcpHub(servers: McpServers, settings: McpHubSettings = {}): McpHub {
  const links = Object.entries(servers).map(([name, server]) => {
    checkServerName(name);
    return new Link(name, server, () => settings.onChange?.(name));
  });
  return {
    servers: links.map((link) => link.name),
    async list() {
      const found = await Promise.all(links.map((link) => toolsOf(link, settings)));
      return found.flat().sort((a, b) => (a.name < b.name ? -1 : 1));
    },
    status: () => Object.fromEntries(links.map((link) => [link.name, link.status])),
    close: async () => void (await Promise.all(links.map((link) => link.close()))),
  };
}

async function toolsOf(link: Link, { log }: McpHubSettings): Promise<Tool[]> {
  let listed: readonly RemoteTool[];
  try {
    listed = await link.tools();
  } catch {
    const { state, starts } = link.status;
    log?.warn({ server: link.name, state, starts }, 'an MCP server is down; its tools are missing');
    return [];
  }
  const tools = new Map<string, Tool>();
  for (const remote of listed) {
    const tool = remoteTool(link, remote);
    if (!tools.has(tool.name)) tools.set(tool.name, tool as Tool);
  }
  const leftOut = link.status.leftOut + listed.length - tools.size;
  if (leftOut > 0) log?.warn({ server: link.name, leftOut }, 'MCP tools left out');
  return [...tools.values()];
}
