import { z } from 'zod';
import { guardedFetch } from '../net/guarded-fetch.ts';
import { defineTool, type Tool, type ToolContext, type ToolResult } from './define-tool.ts';
import { answerResult, OutcomeUnknown, unsentResult } from './http-answer.ts';
import type { HttpOptions } from './http-get.ts';
import { headersInput, REQUEST_MS, urlInput } from './http-input.ts';

const input = z.strictObject({
  url: urlInput,
  method: z.enum(['POST', 'PUT', 'PATCH', 'DELETE']),
  headers: headersInput,
  body: z.string().optional().describe('Request body, sent as it is. Name its type in a content-type header.'),
});
type Args = z.output<typeof input>;

/**
 * Sends a request that changes something, with an `Idempotency-Key` that is the same for every attempt of
 * the call. A request whose answer is lost is sent again with that key: meant for servers that keep to it.
 */
export function httpRequestTool({ allow }: HttpOptions): Tool {
  return defineTool<Args>({
    name: 'http_request',
    description:
      'Sends a POST, PUT, PATCH or DELETE request and returns status and body. It carries an Idempotency-Key. Private addresses are refused.',
    input,
    effect: 'keyed',
    subject: ({ url }) => ({ kind: 'url', text: url }),
    timeLimitMs: REQUEST_MS + 10_000,
    locks: ({ url }) => [{ resource: `url:${withoutFragment(url)}`, mode: 'write' }],
    run: (args, context) => send(args, allow, context),
  }) as Tool;
}

async function send(args: Args, allow: readonly string[], context: ToolContext): Promise<ToolResult> {
  const { url, method, body } = args;
  const headers = { ...without(args.headers, 'idempotency-key'), 'idempotency-key': context.idempotencyKey };
  const fetched = await guardedFetch(
    url,
    { method, headers, ...(body === undefined ? {} : { body }) },
    {
      allow,
      signal: context.signal,
      timeoutMs: REQUEST_MS,
      ...(context.mayAct ? { maySend: context.mayAct } : {}),
    },
  );
  switch (fetched.kind) {
    case 'answered':
      return answerResult(fetched, context);
    case 'refused':
    case 'never_sent':
      return unsentResult(fetched, context);
    case 'unknown_after_send':
      throw new OutcomeUnknown(fetched.note);
  }
}

function withoutFragment(url: string): string {
  return URL.canParse(url) ? new URL(url).href.replace(/#.*$/s, '') : url;
}

function without(headers: Readonly<Record<string, string>>, name: string): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([key]) => key.toLowerCase() !== name));
}
