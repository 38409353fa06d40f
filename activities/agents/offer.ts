import { AGENT_TOOLS } from '../../workflows/core/agents.ts';
import type { StoredTool } from '../store/schema.ts';

/** Tells the model which agents there are to start. */
export function offerAgents(tools: readonly StoredTool[], agents: readonly string[]): readonly StoredTool[] {
  return tools.map((tool) =>
    tool.name === AGENT_TOOLS.spawn
      ? { ...tool, description: `${tool.description} Agents: ${agents.join(', ')}.` }
      : tool,
  );
}
