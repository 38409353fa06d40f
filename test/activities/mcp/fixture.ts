import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { createMcpHub, type McpHub, type McpHubSettings } from '../../../activities/mcp/hub.ts';
import type { McpServer, McpServers } from '../../../activities/mcp/servers.ts';
import type { Tool, ToolResult } from '../../../activities/tools/define-tool.ts';
import { call, contextFor } from '../tools/tool-context.ts';

const SERVER = fileURLToPath(new URL('./fixture-server.js', import.meta.url));

export interface Fixture {
  readonly folder: string;
  readonly server: McpServer;
  lines(name: 'starts' | 'effects' | 'cancelled'): readonly string[];
  offer(tools: readonly unknown[]): void;
  breakIt(): void;
  repair(): void;
}

export const reads = { annotations: { readOnlyHint: true } };
export const offered = (name: string, more: object = {}) => ({ name, inputSchema: { type: 'object' }, ...more });

/** The misbehaving server, with a folder of its own. */
export function fixture(tools: readonly unknown[], more: object = {}): Fixture {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'pawl-mcp-')));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const offer = (list: readonly unknown[]) => writeFileSync(join(folder, 'tools.json'), JSON.stringify(list));
  offer(tools);
  return {
    folder,
    server: { command: process.execPath, args: [SERVER, folder], cwd: folder, ...more },
    lines: (name) => {
      const file = join(folder, name);
      return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
    },
    offer,
    breakIt: () => writeFileSync(join(folder, 'broken'), ''),
    repair: () => rmSync(join(folder, 'broken')),
  };
}

/** A hub that ends with the test, and must leave no process behind. */
export function hubOf(servers: McpServers, settings: McpHubSettings = {}): McpHub {
  const hub = createMcpHub(servers, settings);
  onTestFinished(() => hub.close());
  return hub;
}

export async function toolOf(hub: McpHub, name: string): Promise<Tool> {
  const tools = await hub.list();
  const found = tools.find((tool) => tool.name === name);
  if (!found) throw new Error(`no ${name} among ${tools.map((tool) => tool.name).join(', ')}`);
  return found;
}

export function use(tool: Tool, args: object = {}, signal?: AbortSignal): Promise<ToolResult> {
  return call(tool, args, contextFor('/nowhere', signal ? { signal } : {}));
}

export function isAlive(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2)[0] !== 'Z';
  } catch {
    return false;
  }
}
