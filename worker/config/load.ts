import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { tsImport } from 'tsx/esm/api';
import { z } from 'zod';
import { builtinToolsFor } from '../../activities/tools/builtin.ts';
import type { Tool } from '../../activities/tools/define-tool.ts';
import { createHooks, type Hooks } from '../../activities/gate/hooks.ts';
import type { McpServers } from '../../activities/mcp/servers.ts';
import { createRegistry, type Registry } from '../../activities/tools/registry.ts';
import type { StoredAgent } from '../../activities/store/schema.ts';
import type { PriceTable } from '../../workflows/core/usage.ts';
import { SetupError } from '../setup-error.ts';
import { DEFAULT_DEFINITION } from './default.ts';
import type { AgentDefinition, PawlDefinition } from './define.ts';
import { isRemoteToolOf, mcpShape, resolveMcp } from './mcp.ts';
import { namedLimits, requireSubAgents, toolsWithAgents } from './sub-agents.ts';
import { endingShape, resolveEnding } from './ending.ts';
import { hookShape, permissionsShape, resolvePermissions } from './guards.ts';
import { patienceShape } from './patience.ts';
import { limitsShape, type PricesDefinition, pricesShape, resolveLimits, resolvePrices } from './prices.ts';
import { resolveProviders, type Provider } from './providers.ts';

/** A checked configuration with everything filled in. */
export interface Config {
  /** The config file; null for the built-in default. */
  readonly file: string | null;
  /** Absolute data folder: `PAWL_HOME`, or `.pawl` where Pawl was started. */
  readonly home: string;
  readonly agents: readonly StoredAgent[];
  /** Which limits an agent's own definition names, by the agent's name. */
  readonly namedLimits: Readonly<Record<string, readonly string[]>>;
  readonly registry: Registry;
  readonly hooks: Hooks;
  readonly mcp: McpServers;
  readonly providers: Readonly<Record<string, Provider>>;
  readonly workspaceRoot: string;
  readonly workspaceKind: 'host' | 'shared';
  readonly taskQueue: string;
  readonly temporalAddress: string | null;
  readonly temporalNamespace: string;
  readonly databaseUrl: string | null;
}

const CONFIG_NAMES = ['pawl.config.ts', 'pawl.config.js', 'pawl.config.mjs'];

/** Reads the named config, or `pawl.config.ts` here, or takes the default agent. Throws a SetupError. */
export async function loadConfig(path?: string): Promise<Config> {
  const file = findFile(path);
  const definition = file === null ? DEFAULT_DEFINITION : await importDefinition(file);
  return resolveConfig(definition, file);
}

function findFile(path: string | undefined): string | null {
  if (path !== undefined) {
    if (existsSync(path)) return resolve(path);
    throw new SetupError(`There is no config file at ${path}; check --config.`);
  }
  return CONFIG_NAMES.map((name) => resolve(name)).find((candidate) => existsSync(candidate)) ?? null;
}

/** A loader's message may have a whole code frame. */
function firstLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.split('\n').find((line) => line.trim() !== '') ?? 'it failed';
}

async function importDefinition(file: string): Promise<PawlDefinition> {
  let loaded: { default?: unknown };
  try {
    loaded = (await tsImport(pathToFileURL(file).href, import.meta.url)) as { default?: unknown };
  } catch (error) {
    throw new SetupError(`The config ${file} can't be loaded: ${firstLine(error)}`);
  }
  const inner = loaded.default;
  const definition = inner !== null && typeof inner === 'object' && 'default' in inner ? inner.default : inner;
  const checked = Shape.safeParse(definition);
  if (!checked.success) {
    const fault = checked.error.issues[0];
    throw new SetupError(
      `The config ${file} is broken at ${fault?.path.join('.') || 'its default export'}: ${fault?.message ?? 'unknown fault'}.`,
    );
  }
  return definition as PawlDefinition;
}

const Shape = z.object({
  agents: z
    .array(
      z.strictObject({
        name: z.string().regex(/^[a-z0-9][a-z0-9_-]{0,62}$/, 'a name is lower-case letters, digits, - and _'),
        model: z.string().min(1),
        provider: z.string().optional(),
        instructions: z.string(),
        tools: z.array(z.string()),
        agents: z.array(z.string()).optional(),
        attended: z.boolean().optional(),
        limits: limitsShape.optional(),
        patience: patienceShape.optional(),
        prices: pricesShape.optional(),
        permissions: permissionsShape.optional(),
        compaction: z.boolean().optional(),
        ...endingShape,
      }),
    )
    .min(1, 'name at least one agent'),
  tools: z
    .array(z.custom<Tool>((tool) => typeof (tool as Tool | null)?.run === 'function', 'make it with defineTool'))
    .optional(),
  providers: z
    .record(
      z.string(),
      z.strictObject({
        baseUrl: z.url().optional(),
        apiKeyEnv: z.string().nullable().optional(),
        apiKeyFile: z.string().min(1).optional(),
        wire: z.enum(['chat', 'responses']).optional(),
        reasoning: z.enum(['send', 'send_in_current_turn', 'drop']).optional(),
        schemas: z.enum(['openai', 'openai_strict', 'plain']).optional(),
        structuredOutput: z.enum(['native', 'tool']).optional(),
      }),
    )
    .optional(),
  prices: z.record(z.string(), pricesShape).optional(),
  hooks: z.array(hookShape).optional(),
  mcp: mcpShape.optional(),
  network: z.strictObject({ allow: z.array(z.string().min(1)) }).optional(),
  workspaceRoot: z.string().optional(),
  workspaceKind: z.enum(['host', 'shared']).optional(),
  taskQueue: z.string().min(1).optional(),
});

/** Fills in what a definition leaves out and checks what only the whole can tell. */
export function resolveConfig(definition: PawlDefinition, file: string | null): Config {
  const { env } = process;
  const home = resolve(env.PAWL_HOME ?? '.pawl');
  const registry = registryOf(definition, file);
  const providers = resolveProviders(definition, file);
  const mcp = resolveMcp(definition.mcp, file);
  const isTool = (name: string) => registry.names.includes(name) || isRemoteToolOf(mcp, name);
  const agents = definition.agents.map((agent) =>
    resolveAgent(agent, { registry, isTool, providers: Object.keys(providers), prices: definition.prices ?? {} }),
  );
  const twice = agents.find((agent, index) => agents.findIndex((other) => other.name === agent.name) !== index);
  if (twice) throw new SetupError(`The config has two agents named ${twice.name}; give each its own name.`);
  requireSubAgents(agents);
  return {
    file,
    home,
    agents,
    namedLimits: Object.fromEntries(definition.agents.map(({ name, limits }) => [name, namedLimits(limits)])),
    registry,
    mcp,
    hooks: createHooks(definition.hooks ?? [], file ? dirname(file) : resolve('.')),
    providers,
    workspaceRoot: resolve(
      file && definition.workspaceRoot ? dirname(file) : '.',
      definition.workspaceRoot ?? (env.PAWL_WORKSPACES || resolve(home, 'workspaces')),
    ),
    workspaceKind: definition.workspaceKind ?? workspaceKindOf(env),
    taskQueue: definition.taskQueue ?? 'pawl',
    temporalAddress: env.TEMPORAL_ADDRESS || null,
    temporalNamespace: env.TEMPORAL_NAMESPACE || 'default',
    databaseUrl: env.DATABASE_URL || null,
  };
}

function workspaceKindOf(env: NodeJS.ProcessEnv): Config['workspaceKind'] {
  const named = env.PAWL_WORKSPACE_KIND;
  if (named === 'host' || named === 'shared') return named;
  if (named) throw new SetupError(`PAWL_WORKSPACE_KIND is ${named}; it must be host or shared.`);
  // With the embedded servers every worker is on this machine, so its folders are shared by nature.
  return env.TEMPORAL_ADDRESS ? 'host' : 'shared';
}

function registryOf(definition: PawlDefinition, file: string | null): Registry {
  try {
    return createRegistry([
      ...builtinToolsFor({ allow: definition.network?.allow ?? [] }),
      ...((definition.tools ?? []) as readonly Tool[]),
    ]);
  } catch (error) {
    throw new SetupError(`The config ${file ?? ''} has a tool that can't be used: ${(error as Error).message}`);
  }
}

/** By model: the agent's own, and the one that it may fall back to. */
function pricesOf(
  agent: Pick<StoredAgent, 'name' | 'limits'> & {
    readonly known: PriceTable | null;
    readonly fallback: StoredAgent['fallback'] | undefined;
  },
  prices: Known['prices'],
): PriceTable | null {
  const { name, limits, known, fallback } = agent;
  if (!fallback || known?.[fallback.model]) return known;
  const price = prices[fallback.model];
  if (price) return { ...known, [fallback.model]: resolvePrices(price) };
  if (limits.maxMicroUsd === null) return known;
  throw new SetupError(
    `Agent ${name} has a budget in US dollars and may fall back to ${fallback.model}, of which no price is known: put it under prices in the config, or take the fallback away.`,
  );
}

interface Known {
  readonly registry: Registry;
  readonly providers: readonly string[];
  readonly prices: Readonly<Record<string, PricesDefinition>>;
  isTool(name: string): boolean;
}

function resolveAgent(agent: AgentDefinition, { registry, providers, prices, isTool }: Known): StoredAgent {
  const { name, model, instructions, tools, attended = false, provider = 'openai' } = agent;
  if (!providers.includes(provider)) {
    throw new SetupError(`Agent ${name} names the provider ${provider}, which is not under providers in the config.`);
  }
  const missing = tools.find((tool) => !isTool(tool));
  if (missing) {
    throw new SetupError(
      `Agent ${name} names the tool ${missing}, which there is not; known are ${registry.names.join(', ')}.`,
    );
  }
  const priceOf = agent.prices ?? prices[model];
  const known = priceOf ? resolvePrices(priceOf) : null;
  const limits = resolveLimits({ name, attended, model, limits: agent.limits, prices: known });
  const permissions = resolvePermissions(agent.permissions);
  const compaction = agent.compaction === false ? { compaction: false } : {};
  const patience = agent.patience ? { patience: agent.patience } : {};
  const ending = resolveEnding(agent, { providers, provider });
  const rules = { limits, permissions, ...patience, ...compaction, ...ending };
  const stored = { name, provider, model, instructions, ...toolsWithAgents(agent), attended, ...rules };
  const priced = pricesOf(
    { name, limits, known: known ? { [model]: known } : null, fallback: ending.fallback },
    prices,
  );
  return priced ? { ...stored, prices: priced } : stored;
}
