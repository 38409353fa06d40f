import type { Deps } from '../deps.ts';
import { isRemoteName } from '../mcp/names.ts';
import type { Lookup } from '../tools/registry.ts';

/** The tool of a call. One of an MCP server may not be known yet, where this worker has just started: look once more. */
export async function findTool(deps: Deps, name: string): Promise<Lookup> {
  const found = deps.tools.lookup(name);
  if (found.ok || !isRemoteName(name) || !deps.tools.refresh) return found;
  await deps.tools.refresh();
  return deps.tools.lookup(name);
}
