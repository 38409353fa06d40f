import type { Effect } from '../../workflows/core/tools.ts';
import { defineTool, type Tool } from '../tools/define-tool.ts';
import { fitText } from '../tools/text.ts';
import { callRemote } from './call.ts';
import { jsonSchemaInput } from './json-schema-input.ts';
import type { Link } from './link.ts';
import type { RemoteTool } from './listing.ts';
import { toolName } from './names.ts';
import { MCP } from './servers.ts';

/** A server's tool as one of ours. It holds the link, not a connection: it outlives restarts of its server. */
export function remoteTool(link: Link, remote: RemoteTool): Tool<Record<string, unknown>> {
  const { timeLimitMs = MCP.callMs } = link.server;
  const effect = effectOf(link, remote);
  return defineTool({
    name: toolName(link.name, remote.name),
    description: describe(link.name, remote),
    input: jsonSchemaInput(remote.inputSchema),
    effect,
    onUnknown: 'ask',
    timeLimitMs,
    run: (args, context) =>
      callRemote(
        { link, tool: remote.name, args, reads: effect === 'none', keyed: effect === 'keyed', timeLimitMs },
        context,
      ),
  });
}

/** The config's word first, then the server's own. Without either, a call must not happen twice. */
function effectOf(link: Link, { name, readOnly, idempotent }: RemoteTool): Effect {
  const configured = link.server.effects;
  if (configured && Object.hasOwn(configured, name)) return configured[name] ?? 'once';
  if (readOnly) return 'none';
  return idempotent ? 'idempotent' : 'once';
}

function describe(server: string, { name, description }: RemoteTool): string {
  return fitText(description || `The tool ${name} of the MCP server ${server}.`, MCP.descriptionChars);
}
