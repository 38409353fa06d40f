import { describe, expect, it } from 'vitest';
import { resolveConfig } from '../../../worker/config/load.ts';
import type { AgentDefinition } from '../../../worker/config/define.ts';

const agent = (name: string, more: Partial<AgentDefinition> = {}): AgentDefinition => ({
  name,
  model: 'm',
  instructions: '',
  tools: ['read_file'],
  ...more,
});
const resolved = (...agents: AgentDefinition[]) => resolveConfig({ agents }, null);

describe('an agent that may start others', () => {
  it('has the tools for it, and keeps their names', () => {
    const { agents } = resolved(agent('lead', { agents: ['helper', 'helper'] }), agent('helper'));
    expect(agents[0]).toMatchObject({ tools: ['read_file', 'spawn_agent', 'wait_agents'], agents: ['helper'] });
    expect(agents[1]?.tools).toEqual(['read_file']);
    expect(agents[1]).not.toHaveProperty('agents');
  });

  it('may start itself, and says which limits are its own', () => {
    const config = resolved(agent('lead', { agents: ['lead'], limits: { maxSteps: 5 } }));
    expect(config.namedLimits).toEqual({ lead: ['maxSteps'] });
  });

  it.each([
    [[agent('lead', { agents: ['nobody'] })], 'Agent lead names the agent nobody, which there is not; known are lead.'],
    [
      [agent('lead', { tools: ['spawn_agent'] })],
      'Agent lead names the tool spawn_agent, but no agents to start: name them under agents.',
    ],
    [
      [agent('lead', { agents: ['free'], prices: { input: 1, output: 1 } }), agent('free')],
      'Agent lead has a budget in US dollars and may start free, of which no price is known: give it prices.',
    ],
  ])('is refused with one sentence that says what to do (%#)', (agents, sentence) => {
    expect(() => resolved(...agents)).toThrow(sentence);
  });
});
