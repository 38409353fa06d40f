import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { SchemaRules } from '../../activities/model/lower-schema.ts';
import type { ReasoningReturn } from '../../activities/model/wire-port.ts';
import { SetupError } from '../setup-error.ts';
import type { PawlDefinition, ProviderDefinition } from './define.ts';

/** Where a key is; it is read anew for each request, so one that was changed there is used at once. */
export type KeySource =
  | { readonly kind: 'none' }
  | { readonly kind: 'variable'; readonly name: string }
  | { readonly kind: 'file'; readonly path: string };

/** Where a provider is, what it speaks, and where its key is. */
export interface Provider {
  readonly name: string;
  readonly baseUrl: string;
  readonly key: KeySource;
  readonly wire: 'chat' | 'responses';
  readonly schemas: SchemaRules;
  readonly reasoning: ReasoningReturn;
  readonly structuredOutput: 'native' | 'tool';
}

const OPENAI_URL = 'https://api.openai.com/v1';

export function resolveProviders(definition: PawlDefinition, file: string | null): Record<string, Provider> {
  const named: Record<string, ProviderDefinition> = { openai: {}, ...definition.providers };
  return Object.fromEntries(
    Object.entries(named).map(([name, provider]) => [name, resolveProvider(name, provider, file)]),
  );
}

function resolveProvider(name: string, provider: ProviderDefinition, file: string | null): Provider {
  const fromEnvironment = name === 'openai' ? process.env.OPENAI_BASE_URL || undefined : undefined;
  const baseUrl = fromEnvironment ?? provider.baseUrl ?? (name === 'openai' ? OPENAI_URL : undefined);
  if (baseUrl === undefined)
    throw new SetupError(`Provider ${name} has no baseUrl; add it under providers in the config.`);
  const { wire = 'chat', schemas = 'openai', reasoning = 'send' } = provider;
  const { structuredOutput = baseUrl.startsWith('https://api.openai.com/') ? 'native' : 'tool' } = provider;
  return { name, baseUrl, wire, schemas, reasoning, structuredOutput, key: keySource(name, provider, file) };
}

function keySource(name: string, { apiKeyEnv, apiKeyFile }: ProviderDefinition, file: string | null): KeySource {
  if (apiKeyFile === undefined) {
    return apiKeyEnv === null ? { kind: 'none' } : { kind: 'variable', name: apiKeyEnv ?? 'OPENAI_API_KEY' };
  }
  if (apiKeyEnv !== undefined) {
    throw new SetupError(`Provider ${name} has both apiKeyEnv and apiKeyFile; leave one of them out.`);
  }
  return { kind: 'file', path: resolve(file ? dirname(file) : '.', apiKeyFile) };
}

/** The key as it is now; undefined where there is none. Throws where a file can't be read. */
export function readKey(source: KeySource): string | undefined {
  switch (source.kind) {
    case 'none':
      return 'none';
    case 'variable':
      return process.env[source.name] || undefined;
    case 'file':
      return readFileSync(source.path, 'utf8').trim() || undefined;
  }
}

/** Keys that lie in files, under names that say they are secret. */
export function keysInFiles(providers: Readonly<Record<string, Provider>>): Record<string, string | undefined> {
  const inFiles = Object.values(providers).filter(({ key }) => key.kind === 'file');
  return Object.fromEntries(inFiles.map(({ name, key }) => [`${name}_KEY`, tryKey(key)]));
}

function tryKey(source: KeySource): string | undefined {
  try {
    return readKey(source);
  } catch {
    return undefined;
  }
}

/** Of the providers that the agents name; to be called before anything is started. */
export function requireKeysOf(config: {
  readonly agents: readonly { readonly provider: string; readonly fallback?: { readonly provider: string } }[];
  readonly providers: Readonly<Record<string, Provider>>;
}): void {
  const used = new Set(
    config.agents.flatMap(({ provider, fallback }) => (fallback ? [provider, fallback.provider] : [provider])),
  );
  for (const provider of Object.values(config.providers)) if (used.has(provider.name)) requireKey(provider);
}

/** A worker must not take work that it can't ask a model about. */
function requireKey({ name, key }: Provider): void {
  if (key.kind === 'variable' && !readKey(key)) {
    throw new SetupError(
      `Provider ${name} needs its key in ${key.name}, which is not set; set it, or say apiKeyEnv: null in the config if it needs none.`,
    );
  }
  if (key.kind === 'file' && tryKey(key) === undefined) {
    throw new SetupError(`Provider ${name} needs its key in the file ${key.path}, which has none; write it there.`);
  }
}
