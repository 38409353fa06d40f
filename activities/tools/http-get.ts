import { z } from 'zod';
import { guardedFetch } from '../net/guarded-fetch.ts';
import { answering, failure } from './answer.ts';
import { defineTool, type Tool } from './define-tool.ts';
import { answerResult, unsentResult } from './http-answer.ts';
import { headersInput, REQUEST_MS, urlInput } from './http-input.ts';

const input = z.strictObject({
  url: urlInput,
  method: z.enum(['GET', 'HEAD']).default('GET'),
  headers: headersInput,
});

export interface HttpOptions {
  /** Host names, `host:port`, addresses and networks that may be reached though they are not public. */
  readonly allow: readonly string[];
}

/** Reads a URL; changes nothing, as far as the server keeps to what GET means. */
export function httpGetTool({ allow }: HttpOptions): Tool {
  return defineTool<z.output<typeof input>>({
    name: 'http_get',
    description:
      'Fetches a URL with GET or HEAD and returns status and body. Redirects are followed; private addresses are refused.',
    input,
    effect: 'none',
    subject: ({ url }) => ({ kind: 'url', text: url }),
    timeLimitMs: REQUEST_MS + 10_000,
    run: ({ url, method, headers }, context) =>
      answering('http_get', context, async () => {
        const fetched = await guardedFetch(
          url,
          { method, headers },
          { allow, signal: context.signal, timeoutMs: REQUEST_MS },
        );
        switch (fetched.kind) {
          case 'answered':
            return answerResult(fetched, context);
          case 'refused':
          case 'never_sent':
            return unsentResult(fetched, context);
          case 'unknown_after_send':
            context.signal.throwIfAborted();
            return failure(`No answer came (${fetched.note}).`, fetched.note, context.resultChars);
        }
      }),
  }) as Tool;
}
