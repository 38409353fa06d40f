import type { McpServers } from '../../activities/mcp/servers.ts';
import type { SchemaRules } from '../../activities/model/lower-schema.ts';
import type { ReasoningReturn } from '../../activities/model/wire-port.ts';
import type { Tool } from '../../activities/tools/define-tool.ts';
import type { Patience } from '../../workflows/core/policy.ts';
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
  /** Names of the agents that it may start as sub-agents; gives it `spawn_agent` and `wait_agents`. */
  readonly agents?: readonly string[];
  /** Whether somebody watches; only then may a limit be `null`. False if left out. */
  readonly attended?: boolean;
  readonly limits?: LimitsDefinition;
  /** How long, and how often, it bears with its provider; what is left out is as it is for everybody. */
  readonly patience?: Partial<Patience>;
  /** What its model costs; else what the config says of the model. Without a price there is no USD limit. */
  readonly prices?: PricesDefinition;
  /** What its calls may do unasked; without it, the list of tools is the permission. */
  readonly permissions?: PermissionsDefinition;
  /** False: a conversation that becomes too long ends MAX_TOKENS instead of being summarized. */
  readonly compaction?: boolean;
  /** Takes over for the rest of a turn whose model was overloaded three times in a row. */
  readonly fallback?: { readonly provider?: string; readonly model: string };
  /** Tools that must have succeeded before a turn may end on a final answer. */
  readonly contract?: ContractDefinition;
  /** Whether unfinished todos keep a turn from ending; off if left out. */
  readonly todoGate?: boolean;
  /** Output tokens that a turn is to use before it may end. */
  readonly tokenTarget?: number;
  /** JSON Schema of an object that the answer has to fit; a job may bring its own. */
  readonly outputSchema?: Readonly<Record<string, unknown>>;
}

export interface ContractDefinition {
  readonly tools: readonly string[];
  /** How often the model is asked again; 3 if left out. */
  readonly maxRetries?: number;
  /** Delay before the first rerun, ms, doubled for each further one; 1,000 if left out. */
  readonly baseMs?: number;
  /** Longest delay, ms; 60,000 if left out. */
  readonly maxMs?: number;
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
  /**
   * Whether it takes a schema as the format of a whole reply (`native`), or answers are handed in by a tool call
   * (`tool`). Native for api.openai.com, tool elsewhere, if left out.
   */
  readonly structuredOutput?: 'native' | 'tool';
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
