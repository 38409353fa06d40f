import type { McpServers } from '../../activities/mcp/servers.ts';
import type { SchemaRules } from '../../activities/model/lower-schema.ts';
import type { ReasoningReturn } from '../../activities/model/wire-port.ts';
import type { Tool } from '../../activities/tools/define-tool.ts';
import type { HookDefinition, PermissionsDefinition } from './guards.ts';
import type { LimitsDefinition, PricesDefinition } from './prices.ts';

/** An agent, as a config file writes it. It is stored by content hash; a session keeps the one it began with. */
export interface AgentDefinition {
  readonly name: string;
  /** Name of the model, as its provider knows it. */
  readonly model: string;
  /** Key of `providers`; `openai` if left out. */
  readonly provider?: string;
  readonly instructions: string;
  /** Names of tools, built in or the config's own. */
  readonly tools: readonly string[];
  /** Whether somebody watches; only then may a limit be `null`. False if left out. */
  readonly attended?: boolean;
  readonly limits?: LimitsDefinition;
  /** What its model costs; else what the config says of the model. Without a price there is no USD limit. */
  readonly prices?: PricesDefinition;
  /** What its calls may do unasked; without it, the list of tools is the permission. */
  readonly permissions?: PermissionsDefinition;
  /** False: a conversation that becomes too long ends MAX_TOKENS instead of being summarized. */
  readonly compaction?: boolean;
}

/** A provider that speaks one of OpenAI's protocols. Keys come from the environment or a file, never from here. */
export interface ProviderDefinition {
  /** Base URL up to and with `/v1`; for `openai`, `OPENAI_BASE_URL` comes first. */
  readonly baseUrl?: string;
  /** Name of the variable that holds the key; `null` for a provider that needs none. */
  readonly apiKeyEnv?: string | null;
  /** Path of a file with nothing but the key, instead of a variable; relative to the config file. Read for each request. */
  readonly apiKeyFile?: string;
  /** `chat` (default): chat completions. `responses`: the Responses API, with nothing stored at the provider. */
  readonly wire?: 'chat' | 'responses';
  /**
   * Whether a message's reasoning goes back to the model that made it: `send` (default), `send_in_current_turn`, or
   * `drop` for providers that refuse it.
   */
  readonly reasoning?: ReasoningReturn;
  /** Which JSON Schema its tools may have: `openai` (default), `openai_strict`, or `plain` for whatever comes. */
  readonly schemas?: SchemaRules;
}

export interface PawlDefinition {
  readonly agents: readonly AgentDefinition[];
  readonly tools?: readonly Tool[];
  readonly providers?: Readonly<Record<string, ProviderDefinition>>;
  /** What models cost, by name; for agents that have no prices of their own. */
  readonly prices?: Readonly<Record<string, PricesDefinition>>;
  /** Hosts, `host:port`, addresses or networks besides public ones that `http_get` and `http_request` may reach. */
  readonly network?: { readonly allow: readonly string[] };
  /** MCP servers by name; agents name their tools `mcp__<server>__<tool>` or `mcp__<server>__*`. */
  readonly mcp?: McpServers;
  /** Functions or commands that are asked before a call, or told of what happened. */
  readonly hooks?: readonly HookDefinition[];
  /** Folder that every workspace must lie in; relative to the config file. */
  readonly workspaceRoot?: string;
  /** `host`: files of one machine; `shared`: the same mount on every worker. */
  readonly workspaceKind?: 'host' | 'shared';
  /** Task queue of the workflows; `pawl` if left out. */
  readonly taskQueue?: string;
}

export function defineAgent(definition: AgentDefinition): AgentDefinition {
  return definition;
}

export function defineConfig(definition: PawlDefinition): PawlDefinition {
  return definition;
}
