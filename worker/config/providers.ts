import type { SchemaRules } from '../../activities/model/lower-schema.ts';
import { SetupError } from '../setup-error.ts';
import type { PawlDefinition, ProviderDefinition } from './define.ts';

/** Where a provider is and which variable holds its key. The key itself is read anew for each request. */
export interface Provider {
  readonly name: string;
  readonly baseUrl: string;
  readonly apiKeyEnv: string | null;
  readonly schemas: SchemaRules;
}

const OPENAI_URL = 'https://api.openai.com/v1';

export function resolveProviders(definition: PawlDefinition): Record<string, Provider> {
  const named: Record<string, ProviderDefinition> = { openai: {}, ...definition.providers };
  return Object.fromEntries(Object.entries(named).map(([name, provider]) => [name, resolveProvider(name, provider)]));
}

function resolveProvider(name: string, provider: ProviderDefinition): Provider {
  const fromEnvironment = name === 'openai' ? process.env.OPENAI_BASE_URL || undefined : undefined;
  const baseUrl = fromEnvironment ?? provider.baseUrl ?? (name === 'openai' ? OPENAI_URL : undefined);
  if (baseUrl === undefined)
    throw new SetupError(`Provider ${name} has no baseUrl; add it under providers in the config.`);
  const { schemas = 'openai' } = provider;
  return {
    name,
    baseUrl,
    schemas,
    apiKeyEnv: provider.apiKeyEnv === undefined ? 'OPENAI_API_KEY' : provider.apiKeyEnv,
  };
}

/** Of the providers that the agents name; to be called before anything is started. */
export function requireKeysOf(config: {
  readonly agents: readonly { readonly provider: string }[];
  readonly providers: Readonly<Record<string, Provider>>;
}): void {
  const used = new Set(config.agents.map((agent) => agent.provider));
  requireKeys(Object.values(config.providers).filter(({ name }) => used.has(name)));
}

/** A worker must not take work that it can't ask a model about. */
function requireKeys(providers: readonly Provider[]): void {
  for (const { name, apiKeyEnv } of providers) {
    if (apiKeyEnv !== null && !process.env[apiKeyEnv]) {
      throw new SetupError(
        `Provider ${name} needs its key in ${apiKeyEnv}, which is not set; set it, or say apiKeyEnv: null in the config if it needs none.`,
      );
    }
  }
}
