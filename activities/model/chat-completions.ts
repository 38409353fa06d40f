import type { ChatCompletionCreateParamsStreaming } from 'openai/resources/chat/completions';
import { POLICY } from '../../workflows/core/policy.ts';
import { NO_USAGE } from '../../workflows/core/sample-outcome.ts';
import { Exchange } from './exchange.ts';
import type { ModelListener, ModelPort, ModelRequest, ModelResult } from './port.ts';
import type { SchemaRules } from './lower-schema.ts';
import { noteOf } from './redact.ts';
import { type ExtraFields, toChatMessages, toChatTools } from './to-chat-messages.ts';

export interface ChatCompletionsOptions {
  /** With its version, such as `https://host/v1`. */
  readonly baseUrl: string;
  /** Read again for each request, so a key that was changed at its source is used at once. */
  readonly apiKey: () => string | undefined;
  readonly fetch?: typeof fetch;
  /** ms since the epoch. */
  readonly now?: () => number;
  /** Longest time without a data frame. */
  readonly stallMs?: number;
  /** How long the usage may take after the finish reason. */
  readonly usageWaitMs?: number;
  /** Which JSON Schema the provider takes; `openai` if left out. */
  readonly schemas?: SchemaRules;
  /** Default `send`. */
  readonly extraFields?: ExtraFields;
  /** By default the newer name for api.openai.com, whose newer models refuse the older one, and `max_tokens` elsewhere. */
  readonly outputCapField?: 'max_tokens' | 'max_completion_tokens';
}

const USAGE_WAIT_MS = 10_000;

/** Any provider that speaks OpenAI's chat completions. Throws only what the listener throws. */
export function createChatCompletionsPort(options: ChatCompletionsOptions): ModelPort {
  return { sample: (request, listener) => sampleOnce(options, request, listener) };
}

async function sampleOnce(
  options: ChatCompletionsOptions,
  request: ModelRequest,
  listener: ModelListener,
): Promise<ModelResult> {
  if (listener.signal.aborted) {
    return { kind: 'cut', usage: NO_USAGE, text: '', reasoning: '', calls: [], extra: {} };
  }
  const apiKey = readKey(options.apiKey);
  if (!apiKey) {
    return { kind: 'auth', status: 401, usage: NO_USAGE, note: noteOf({ kind: 'auth' }, 'no API key is set') };
  }
  const exchange = new Exchange(
    {
      baseUrl: options.baseUrl,
      apiKey,
      fetch: options.fetch ?? fetch,
      now: options.now ?? Date.now,
      stallMs: options.stallMs ?? POLICY.sample.stallMs,
      usageWaitMs: options.usageWaitMs ?? USAGE_WAIT_MS,
    },
    listener,
  );
  try {
    return await exchange.run(toBody(request, options), request.idempotencyKey);
  } finally {
    exchange.release();
  }
}

/** A source that fails has no key; why is not told, it may name the secret. */
function readKey(source: () => string | undefined): string | null {
  try {
    return source()?.trim() || null;
  } catch {
    return null;
  }
}

/** The same request always gives the same bytes: retries share an idempotency key. */
function toBody(request: ModelRequest, options: ChatCompletionsOptions): ChatCompletionCreateParamsStreaming {
  const { model, instructions, tools } = request;
  const extraFields = options.extraFields ?? 'send';
  return {
    model,
    messages: toChatMessages(request.messages, { instructions, model, extraFields }),
    ...(tools.length > 0 ? { tools: toChatTools(tools, options.schemas ?? 'openai') } : {}),
    [options.outputCapField ?? capFieldOf(options.baseUrl)]: request.outputTokens,
    stream: true,
    stream_options: { include_usage: true },
  };
}

function capFieldOf(baseUrl: string): 'max_tokens' | 'max_completion_tokens' {
  return baseUrl.startsWith('https://api.openai.com/') ? 'max_completion_tokens' : 'max_tokens';
}
