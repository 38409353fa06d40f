import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { isRemoteName } from '../../activities/mcp/names.ts';
import { checkServerName, type McpServers } from '../../activities/mcp/servers.ts';
import { SetupError } from '../setup-error.ts';

const common = {
  timeLimitMs: z.number().int().positive().optional(),
  effects: z.record(z.string(), z.enum(['none', 'idempotent', 'keyed', 'once'])).optional(),
};

/** For the field `mcp` of the config. */
export const mcpShape = z.record(
  z.string(),
  z.union([
    z.strictObject({
      command: z.string().min(1),
      args: z.array(z.string()).optional(),
      env: z.record(z.string(), z.string().optional()).optional(),
      cwd: z.string().optional(),
      ...common,
    }),
    z.strictObject({ url: z.url(), headersEnv: z.record(z.string(), z.string()).optional(), ...common }),
  ]),
);

/** Checks names, and resolves folders against the config's. Throws a SetupError. */
export function resolveMcp(servers: McpServers | undefined, file: string | null): McpServers {
  const folder = file ? dirname(file) : resolve('.');
  return Object.fromEntries(
    Object.entries(servers ?? {}).map(([name, server]) => {
      try {
        checkServerName(name);
      } catch (error) {
        throw new SetupError((error as Error).message);
      }
      return [name, 'command' in server ? { ...server, cwd: resolve(folder, server.cwd ?? '.') } : server];
    }),
  );
}

/** Whether an agent may name this: a tool, or all tools, of a server that the config has. */
export function isRemoteToolOf(servers: McpServers, name: string): boolean {
  return isRemoteName(name) && Object.keys(servers).some((server) => name.startsWith(`mcp__${server}__`));
}
