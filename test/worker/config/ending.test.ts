import { describe, expect, test } from 'vitest';
import type { AgentDefinition } from '../../../worker/config/define.ts';
import { resolveConfig } from '../../../worker/config/load.ts';

const AGENT: AgentDefinition = { name: 'a', model: 'm', instructions: '', tools: ['shell', 'mcp__git__*'] };
const GIT = { git: { command: 'git-server' } };

function agentOf(change: Partial<AgentDefinition>) {
  return resolveConfig({ agents: [{ ...AGENT, ...change }], mcp: GIT }, null).agents[0]!;
}

describe('what an agent says of its ends', () => {
  // Trap: a field that is stored though nobody said it would change the hash of every agent there is.
  test('nothing is stored where it says nothing', () => {
    expect(Object.keys(agentOf({})).sort()).toEqual([
      'attended',
      'instructions',
      'limits',
      'model',
      'name',
      'permissions',
      'provider',
      'tools',
    ]);
  });

  test('gaps are filled in', () => {
    const said = { contract: { tools: ['shell', 'mcp__git__push'] }, fallback: { model: 'other' }, todoGate: true };
    expect(agentOf({ ...said, tokenTarget: 9 })).toMatchObject({
      contract: { tools: ['shell', 'mcp__git__push'], maxRetries: 3, baseMs: 1_000, maxMs: 60_000 },
      fallback: { provider: 'openai', model: 'other' },
      todoGate: true,
      tokenTarget: 9,
    });
  });

  test.each<[name: string, change: Partial<AgentDefinition>, why: RegExp]>([
    ['a required tool that it lacks', { contract: { tools: ['read_file'] } }, /requires the tool read_file/],
    [
      'an answer tool without a schema',
      { contract: { tools: ['StructuredOutput'] } },
      /requires the tool StructuredOutput/,
    ],
    ['a fallback to nobody', { fallback: { provider: 'nobody', model: 'm' } }, /provider nobody, which is not under/],
    ['a schema that can’t be used', { outputSchema: { type: 'array' } }, /^Agent a: The output schema can’t be used/],
  ])('%s is refused in one sentence', (_name, change, why) => {
    expect(() => agentOf(change)).toThrow(why);
  });
});
