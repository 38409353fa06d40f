// A worker's part with one MCP server, to be killed: `hub-process.ts <server as JSON>`, forked.
import { createMcpHub } from '../../../activities/mcp/hub.ts';
import type { McpServer } from '../../../activities/mcp/servers.ts';

const hub = createMcpHub({ f: JSON.parse(process.argv[2] ?? '{}') as McpServer });
await hub.list();
process.send?.(hub.status().f?.pid);
