import type { ChatCompletionCreateParamsStreaming } from 'openai/resources/chat/completions';
import { accumulate, conclude, EMPTY_DRAFT, replyOf } from './accumulate.ts';
import { nativeFormat } from './native-format.ts';
import type { ModelPort, ModelRequest } from './port.ts';
import { toChatMessages, toChatTools } from './to-chat-messages.ts';
import { createWirePort, type WireOptions } from './wire-port.ts';

export interface ChatCompletionsOptions extends WireOptions {
  /** By default the newer name for api.openai.com, whose newer models refuse the older one, and `max_tokens` elsewhere. */
  readonly outputCapField?: 'max_tokens' | 'max_completion_tokens';
}

/** Any provider that speaks OpenAI's chat completions. Throws only what the listener throws. */
export function createChatCompletionsPort(options: ChatCompletionsOptions): ModelPort {
  return createWirePort(options, (request) => ({
    empty: EMPTY_DRAFT,
    send: (client, how) => client.chat.completions.create(toBody(request, options), how).asResponse(),
    accumulate,
    marked: (draft) => ({ ...draft, done: true }),
    conclude,
    replyOf,
  }));
}

/** The same request always gives the same bytes: retries share an idempotency key. */
function toBody(request: ModelRequest, options: ChatCompletionsOptions): ChatCompletionCreateParamsStreaming {
  const { provider, model, instructions, tools } = request;
  const { schemas = 'openai', reasoning = 'send' } = options;
  const format = nativeFormat(request.answer, schemas);
  return {
    model,
    messages: toChatMessages(request.messages, { instructions, provider, model, reasoning }),
    ...(tools.length > 0 ? { tools: toChatTools(tools, schemas) } : {}),
    ...(format ? { response_format: { type: 'json_schema', json_schema: { ...format } } } : {}),
    [options.outputCapField ?? capFieldOf(options.baseUrl)]: request.outputTokens,
    stream: true,
    stream_options: { include_usage: true },
  };
}

function capFieldOf(baseUrl: string): 'max_tokens' | 'max_completion_tokens' {
  return baseUrl.startsWith('https://api.openai.com/') ? 'max_completion_tokens' : 'max_tokens';
}
