import type { ResponseCreateParamsStreaming } from 'openai/resources/responses/responses';
import { accumulateResponse, concludeResponse, EMPTY_RESPONSE, responseReply } from './accumulate-response.ts';
import { nativeFormat } from './native-format.ts';
import type { ModelPort, ModelRequest } from './port.ts';
import { toResponseInput, toResponseTools } from './to-response-input.ts';
import { createWirePort, type WireOptions } from './wire-port.ts';

/** Any provider that speaks OpenAI's Responses API. Nothing is stored there. Throws only what the listener throws. */
export function createResponsesPort(options: WireOptions): ModelPort {
  return createWirePort(options, (request) => ({
    empty: EMPTY_RESPONSE,
    send: (client, how) => client.responses.create(toBody(request, options), how).asResponse(),
    accumulate: accumulateResponse,
    // Its last event is the end; a mark without it is a stream that was cut.
    marked: (draft) => draft,
    conclude: concludeResponse,
    replyOf: responseReply,
  }));
}

/** The same request always gives the same bytes: retries share an idempotency key. */
function toBody(request: ModelRequest, options: WireOptions): ResponseCreateParamsStreaming {
  const { provider, model, instructions, tools } = request;
  const { schemas = 'openai', reasoning = 'send' } = options;
  const format = nativeFormat(request.answer, schemas);
  return {
    model,
    ...(instructions.trim() === '' ? {} : { instructions }),
    input: toResponseInput(request.messages, { provider, model, reasoning }),
    ...(tools.length > 0 ? { tools: toResponseTools(tools, schemas) } : {}),
    ...(format ? { text: { format: { type: 'json_schema', ...format } } } : {}),
    max_output_tokens: request.outputTokens,
    store: false,
    // Models that do not reason refuse it: such a provider says `drop`.
    ...(reasoning === 'drop' ? {} : { include: ['reasoning.encrypted_content'] }),
    stream: true,
  };
}
