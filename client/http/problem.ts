import { z } from '@hono/zod-openapi';
import { HTTPException } from 'hono/http-exception';

/** Every way a request can fail, and what its problem document says (RFC 9457). Types are for ever. */
const PROBLEMS = {
  'bad-request': { status: 400, title: 'The request is not understood' },
  'body-not-json': { status: 400, title: 'The body is not JSON' },
  'idempotency-key-missing': { status: 400, title: 'The Idempotency-Key header is missing or unusable' },
  'bad-position': { status: 400, title: 'The cursor or event position does not fit' },
  'host-not-allowed': { status: 403, title: 'The Host of the request is not ours' },
  'origin-not-allowed': { status: 403, title: 'The Origin of the request is not ours' },
  'not-found': { status: 404, title: 'There is no such thing' },
  'unknown-job': { status: 404, title: 'There is no such job' },
  'unknown-session': { status: 404, title: 'There is no such session' },
  'unknown-input': { status: 404, title: 'There is no such input' },
  'unknown-turn': { status: 404, title: 'There is no such turn' },
  'unknown-approval': { status: 404, title: 'There is no such approval' },
  'unknown-goal': { status: 404, title: 'There is no such goal' },
  'method-not-allowed': { status: 405, title: 'This address does not know that method' },
  'key-conflict': { status: 409, title: 'The Idempotency-Key was used for another body' },
  'approval-stale': { status: 409, title: 'The approval can’t be answered any more' },
  'input-conflict': { status: 409, title: 'The id was used for something else' },
  'input-taken': { status: 409, title: 'The input can’t be changed any more' },
  'input-locked': { status: 409, title: 'Somebody else edits the input' },
  'session-busy': { status: 409, title: 'The session is not at rest' },
  'session-archived': { status: 409, title: 'The session is archived' },
  'agent-ended': { status: 409, title: 'The sub-agent has ended' },
  'goal-final': { status: 409, title: 'The goal has come to its end' },
  'goal-open': { status: 409, title: 'The session has an open goal' },
  'too-large': { status: 413, title: 'The body is too large' },
  'not-json-type': { status: 415, title: 'The Content-Type is not JSON' },
  'answer-misfit': { status: 422, title: 'The answer is not one to what was asked' },
  'bad-body': { status: 422, title: 'The body does not fit the schema' },
  'unknown-message': { status: 422, title: 'The session has no such message' },
  'unknown-agent': { status: 422, title: 'There is no such agent' },
  'budget-refused': { status: 422, title: 'The budget cannot be kept' },
  'goal-refused': { status: 422, title: 'The goal cannot be kept' },
  'schema-refused': { status: 422, title: 'The output schema cannot be used' },
  'workspace-refused': { status: 422, title: 'The workspace cannot be used' },
  'queue-full': { status: 429, title: 'Too many inputs wait' },
  internal: { status: 500, title: 'A fault of our own' },
  'engine-away': { status: 503, title: 'The engine cannot be reached' },
  'store-away': { status: 503, title: 'The store cannot be reached' },
} as const;

export type ProblemName = keyof typeof PROBLEMS;

/** Why a session takes nothing. */
export const CLOSED = { archived: 'session-archived', agent_ended: 'agent-ended' } as const;

export const ProblemSchema = z
  .object({
    type: z.string().openapi({ example: 'urn:pawl:problem:unknown-agent' }),
    title: z.string(),
    status: z.number().int(),
    detail: z.string().openapi({ description: 'What to do about it.' }),
    job: z.string().optional().openapi({ description: 'The job that a key-conflict is with.' }),
  })
  .openapi('Problem');

type Problem = z.infer<typeof ProblemSchema>;

/** By status, in seconds: a queue is not empty again as soon as a server is back. */
const RETRY_AFTER_S: Readonly<Record<number, number>> = { 429: 30, 503: 2 };

/** Answers with a problem document. `detail` says what to do; it never quotes an error. */
export function problem(name: ProblemName, detail: string, more: Pick<Problem, 'job'> = {}): Response {
  const { status, title } = PROBLEMS[name];
  const body: Problem = { type: `urn:pawl:problem:${name}`, title, status, detail, ...more };
  const headers = new Headers({ 'content-type': 'application/problem+json' });
  const retryAfter = RETRY_AFTER_S[status];
  if (retryAfter !== undefined) headers.set('retry-after', String(retryAfter));
  return new Response(JSON.stringify(body), { status, headers });
}

/** Ends a request with a problem: typed handlers return what went well only. */
export function refuse(name: ProblemName, detail: string, more: Pick<Problem, 'job'> = {}): never {
  const { status } = PROBLEMS[name];
  throw new HTTPException(status, { res: problem(name, detail, more) });
}
