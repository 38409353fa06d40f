import type { StoredAgent } from '../../activities/store/schema.ts';
import { AGENT_TOOLS } from '../../workflows/core/agents.ts';
import { SetupError } from '../setup-error.ts';
import type { AgentDefinition } from './define.ts';
import type { LimitsDefinition } from './prices.ts';

/** An agent that may start others has the tools for it. */
export function toolsWithAgents({
  name,
  tools,
  agents = [],
}: Pick<AgentDefinition, 'name' | 'tools' | 'agents'>): Pick<StoredAgent, 'tools' | 'agents'> {
  const own = Object.values(AGENT_TOOLS);
  const named = own.find((tool) => tools.includes(tool));
  if (agents.length === 0 && named) {
    throw new SetupError(`Agent ${name} names the tool ${named}, but no agents to start: name them under agents.`);
  }
  if (agents.length === 0) return { tools };
  return { tools: [...tools, ...own.filter((tool) => !tools.includes(tool))], agents: [...new Set(agents)] };
}

/** Limits that a definition names itself, in the words of a turn's limits. */
export function namedLimits(limits: LimitsDefinition | undefined): readonly string[] {
  return Object.keys(limits ?? {}).map((name) => (name === 'maxUsd' ? 'maxMicroUsd' : name));
}

/** What an agent may start must be there, and must have prices where the money is counted. */
export function requireSubAgents(agents: readonly StoredAgent[]): void {
  for (const { name, agents: started = [], limits } of agents) {
    for (const other of started) {
      const found = agents.find((each) => each.name === other);
      if (!found) {
        const known = agents.map((each) => each.name).join(', ');
        throw new SetupError(`Agent ${name} names the agent ${other}, which there is not; known are ${known}.`);
      }
      if (limits.maxMicroUsd !== null && !found.prices) {
        throw new SetupError(
          `Agent ${name} has a budget in US dollars and may start ${other}, of which no price is known: give it prices.`,
        );
      }
    }
  }
}
