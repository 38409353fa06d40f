import type { Hook } from '@hono/zod-openapi';
import type { Env } from 'hono';
import { problem } from './problem.ts';

/** Turns the first fault of a request that does not fit its schema into a problem document. */
export const refuseFault: Hook<unknown, Env, string, unknown> = (result) => {
  if (result.success) return undefined;
  const issue = result.error.issues[0];
  const field = issue?.path.join('.') ?? '';
  const fault = issue?.message ?? 'it does not fit';
  if (result.target === 'json') return problem('bad-body', `${field || 'The body'}: ${fault}.`);
  if (field === 'Idempotency-Key') {
    return problem(
      'idempotency-key-missing',
      'Set the header Idempotency-Key to a key of your own, 1 to 255 printable characters.',
    );
  }
  if (field === 'Last-Event-ID' || field === 'after') return problem('bad-position', `${field}: ${fault}.`);
  return problem('bad-request', `${field || result.target}: ${fault}.`);
};
