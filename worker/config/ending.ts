import { z } from 'zod';
import { usableSchema } from '../../activities/answer/output-schema.ts';
import { matchesName } from '../../activities/mcp/names.ts';
import type { StoredAgent } from '../../activities/store/schema.ts';
import { ANSWER_TOOL } from '../../workflows/core/ending-checks/structured-output.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Contract } from '../../workflows/core/turn-rules.ts';
import { SetupError } from '../setup-error.ts';
import type { AgentDefinition, ContractDefinition } from './define.ts';

const count = z.number().int().min(0);

/** What an agent may say of the way its turns go on and end. */
export const endingShape = {
  fallback: z.strictObject({ provider: z.string().optional(), model: z.string().min(1) }).optional(),
  contract: z
    .strictObject({
      tools: z.array(z.string()).min(1, 'name at least one tool'),
      maxRetries: count.optional(),
      baseMs: count.optional(),
      maxMs: count.optional(),
    })
    .optional(),
  todoGate: z.boolean().optional(),
  tokenTarget: z.number().int().positive().optional(),
  outputSchema: z.record(z.string(), z.unknown()).optional(),
};

type Ending = Pick<StoredAgent, 'fallback' | 'contract' | 'todoGate' | 'tokenTarget' | 'outputSchema'>;

interface Known {
  readonly providers: readonly string[];
  /** Of the agent's own model. */
  readonly provider: string;
}

/** Only what the agent says is stored: its hash stays the same where it says nothing. */
export function resolveEnding(agent: AgentDefinition, known: Known): Ending {
  const { name, fallback, contract, todoGate, tokenTarget, outputSchema } = agent;
  if (outputSchema !== undefined) refuseSchema(name, outputSchema);
  return {
    ...(fallback ? { fallback: resolveFallback(name, fallback, known) } : {}),
    ...(contract ? { contract: resolveContract(agent, contract) } : {}),
    ...(todoGate === undefined ? {} : { todoGate }),
    ...(tokenTarget === undefined ? {} : { tokenTarget }),
    ...(outputSchema === undefined ? {} : { outputSchema }),
  };
}

function resolveFallback(
  name: string,
  { provider, model }: NonNullable<AgentDefinition['fallback']>,
  known: Known,
): NonNullable<Ending['fallback']> {
  const named = provider ?? known.provider;
  if (!known.providers.includes(named)) {
    throw new SetupError(
      `Agent ${name} falls back to the provider ${named}, which is not under providers in the config.`,
    );
  }
  return { provider: named, model };
}

function resolveContract({ name, tools, outputSchema }: AgentDefinition, contract: ContractDefinition): Contract {
  const missing = contract.tools.find(
    (tool) => !isOffered(tools, tool) && !(tool === ANSWER_TOOL && outputSchema !== undefined),
  );
  if (missing !== undefined) {
    throw new SetupError(`The contract of agent ${name} requires the tool ${missing}, which the agent does not have.`);
  }
  const { maxRetries, baseMs, maxMs } = POLICY.contract;
  return {
    tools: contract.tools,
    maxRetries: contract.maxRetries ?? maxRetries,
    baseMs: contract.baseMs ?? baseMs,
    maxMs: contract.maxMs ?? maxMs,
  };
}

/** `mcp__server__*` stands for tools whose names nobody knows yet. */
function isOffered(tools: readonly string[], name: string): boolean {
  return tools.some((pattern) => matchesName(pattern, name));
}

function refuseSchema(name: string, schema: unknown): void {
  const usable = usableSchema(schema);
  if (!usable.ok) throw new SetupError(`Agent ${name}: ${usable.why}`);
}
