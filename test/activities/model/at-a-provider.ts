import { afterEach } from 'vitest';
import { type ChatCompletionsOptions, createChatCompletionsPort } from '../../../activities/model/chat-completions.ts';
import type { Clocks, ModelPort, ModelRequest, ModelResult } from '../../../activities/model/port.ts';
import { createResponsesPort } from '../../../activities/model/responses.ts';
import { DEFAULT_PATIENCE } from '../../../workflows/core/policy.ts';
import {
  type ScriptedProvider,
  type ScriptedProviderOptions,
  startScriptedProvider,
  type WireName,
} from '../../../testing/index.ts';

export const REQUEST: ModelRequest = {
  provider: 'p',
  model: 'm',
  instructions: 'Be brief.',
  messages: [{ kind: 'user', text: 'hello', input: 'i', source: 'prompt' }],
  tools: [
    { name: 'x', description: 'd', parameters: { type: 'object', properties: {} }, effect: 'none', runs: 'activity' },
  ],
  outputTokens: 64,
  clocks: DEFAULT_PATIENCE,
  watchRepetition: true,
  idempotencyKey: 'key-1',
};
export const KNOWN = { inputTokens: 100, cachedTokens: 0, outputTokens: 10, reasoningTokens: 0, complete: true };
export const NOTHING = { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0, complete: true };
export const UNKNOWN = { ...NOTHING, complete: false };
export const HI = { text: 'Hi', reasoning: '', calls: [], extra: {} };

export const WIRES: readonly WireName[] = ['chat', 'responses'];

const open: ScriptedProvider[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((provider) => provider.close()));
});

/** A scripted provider that is closed after the test. */
export async function provider(options: ScriptedProviderOptions): Promise<ScriptedProvider> {
  const started = await startScriptedProvider({ expectKey: true, ...options });
  open.push(started);
  return started;
}

export interface Asking extends Partial<ChatCompletionsOptions> {
  readonly signal?: AbortSignal;
  readonly request?: Partial<ModelRequest>;
  readonly clocks?: Partial<Clocks>;
}

export function portTo({ baseUrl }: { readonly baseUrl: string }, wire: WireName, options: Asking = {}): ModelPort {
  const create = wire === 'chat' ? createChatCompletionsPort : createResponsesPort;
  return create({ baseUrl, apiKey: () => 'test-key-1', ...options });
}

export interface Heard {
  readonly result: ModelResult;
  readonly heard: readonly string[];
}

/** One request over real HTTP, with what the listener heard of it. */
export async function sample(
  scripted: { readonly baseUrl: string },
  wire: WireName,
  options: Asking = {},
): Promise<Heard> {
  const heard: string[] = [];
  const result = await portTo(scripted, wire, options).sample(
    { ...REQUEST, ...options.request, clocks: { ...DEFAULT_PATIENCE, ...options.clocks } },
    {
      signal: options.signal ?? new AbortController().signal,
      onDelta: (channel, chunk) => heard.push(`${channel}:${chunk}`),
    },
  );
  return { result, heard };
}
