import type { Tool } from '../tools/define-tool.ts';
import { createRegistry, type Registry } from '../tools/registry.ts';
import type { McpHub } from './hub.ts';
import { isRemoteName, matchesName } from './names.ts';

export interface RemoteRegistry extends Registry {
  /** Asks the servers for their tools: once when a worker starts, then before each turn opens. */
  refresh(): Promise<void>;
}

/**
 * The fixed tools, and those of MCP servers as of the last `refresh`. An agent names remote tools one by one or as
 * `mcp__server__*`; those that are not there now are left out of a list. A tool that has gone meanwhile can still be
 * looked up, since a turn keeps the list that it began with: its call says then what the server says.
 */
export function withRemoteTools(fixed: Registry, hub: McpHub): RemoteRegistry {
  const known = new Map<string, Tool>();
  let remote = createRegistry([]);
  let listed: readonly string[] = [];
  let refreshing: Promise<void> | null = null;
  const refresh = async () => {
    const tools = await hub.list();
    for (const tool of tools) known.set(tool.name, tool);
    remote = createRegistry([...known.values()]);
    listed = tools.map((tool) => tool.name);
  };
  return {
    get names() {
      return [...fixed.names, ...listed];
    },
    lookup: (name, offered) => (isRemoteName(name) ? remote : fixed).lookup(name, offered),
    describe(wanted) {
      const names = wanted.flatMap((name) =>
        isRemoteName(name) ? listed.filter((each) => matchesName(name, each)) : [name],
      );
      return [...new Set(names)].flatMap((name) => (isRemoteName(name) ? remote : fixed).describe([name]));
    },
    refresh: () => (refreshing ??= refresh().finally(() => (refreshing = null))),
  };
}
