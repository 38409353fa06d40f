import { describe, expect, test } from 'vitest';
import { createApp } from '../../../client/http/app.ts';
import { ProblemSchema } from '../../../client/http/problem.ts';
import { BadPosition, EngineAway, type Runs, StoreAway } from '../../../client/index.ts';

const SECRET = 'postgres://pawl:secret@host/db';

/** A facade of which a test says what it does; anything else is a fault of the test. */
function stub(part: Partial<Runs> = {}): Runs {
  const unexpected = () => {
    throw new Error(`unexpected call, ${SECRET}`);
  };
  const verbs = [
    'submit',
    'get',
    'list',
    'events',
    'cancel',
    'show',
    'ps',
    'plan',
    'check',
    'answer',
    'report',
  ] as const;
  return { ...(Object.fromEntries(verbs.map((verb) => [verb, unexpected])) as unknown as Runs), ...part };
}

const JSON_BODY = { 'content-type': 'application/json' };
const KEYED = { ...JSON_BODY, 'idempotency-key': 'k1' };
const post = (body: unknown, headers: Record<string, string> = KEYED): RequestInit => ({
  method: 'POST',
  headers,
  body: typeof body === 'string' ? body : JSON.stringify(body),
});
const rejects = (error: Error) => () => Promise.reject(error);
const refused = (submitted: Awaited<ReturnType<Runs['submit']>>) => stub({ submit: () => Promise.resolve(submitted) });

const TICKET = post({ text: 'fix it' });
const NOBODY = stub();
const YES = post({ answer: 'approved', by: 'pat' }, JSON_BODY);
const answered = (given: Awaited<ReturnType<Runs['answer']>>) => stub({ answer: () => Promise.resolve(given) });
const APPROVAL = '/v1/approvals/out_1';
const stale = (why: 'expired' | 'turn_ended' | 'moved_on') =>
  stub({ answer: () => Promise.resolve({ kind: 'stale', why }) });

describe('what goes wrong is a problem document', () => {
  test.each<[string, Runs, string, RequestInit, number, string, RegExp]>([
    ['no key', NOBODY, '/v1/jobs', post({ text: 'x' }, JSON_BODY), 400, 'idempotency-key-missing', /Idempotency-Key/],
    [
      'an empty key',
      NOBODY,
      '/v1/jobs',
      post({ text: 'x' }, { ...JSON_BODY, 'idempotency-key': '' }),
      400,
      'idempotency-key-missing',
      /Idempotency-Key/,
    ],
    ['broken JSON', NOBODY, '/v1/jobs', post('{"text":'), 400, 'body-not-json', /JSON/],
    [
      'no JSON type',
      NOBODY,
      '/v1/jobs',
      post('{"text":"x"}', { ...KEYED, 'content-type': 'text/plain' }),
      415,
      'not-json-type',
      /application\/json/,
    ],
    ['no text', NOBODY, '/v1/jobs', post({}), 422, 'bad-body', /text/],
    ['blank text', NOBODY, '/v1/jobs', post({ text: ' \n' }), 422, 'bad-body', /no text/],
    ['an array', NOBODY, '/v1/jobs', post([]), 422, 'bad-body', /./],
    ['a field that there is not', NOBODY, '/v1/jobs', post({ text: 'x', agnet: 'y' }), 422, 'bad-body', /agnet/],
    ['too large', NOBODY, '/v1/jobs', post({ text: 'x'.repeat(1_048_576) }), 413, 'too-large', /workspace/],
    [
      'unknown agent',
      refused({ kind: 'unknown_agent', asked: 'b', known: ['a'] }),
      '/v1/jobs',
      TICKET,
      422,
      'unknown-agent',
      /a/,
    ],
    [
      'bad workspace',
      refused({ kind: 'workspace_refused', why: 'It is outside.' }),
      '/v1/jobs',
      TICKET,
      422,
      'workspace-refused',
      /outside/,
    ],
    [
      'budget without a price',
      refused({ kind: 'budget_refused', why: 'No price is known.' }),
      '/v1/jobs',
      TICKET,
      422,
      'budget-refused',
      /price/,
    ],
    [
      'an output schema that can’t be used',
      refused({ kind: 'schema_refused', why: 'Its root must be an object.' }),
      '/v1/jobs',
      post({ text: 'fix it', outputSchema: { type: 'array' } }),
      422,
      'schema-refused',
      /root/,
    ],
    [
      'an output schema that is none',
      NOBODY,
      '/v1/jobs',
      post({ text: 'x', outputSchema: [] }),
      422,
      'bad-body',
      /outputSchema/,
    ],
    [
      'key conflict',
      refused({ kind: 'conflict', job: 'job_1' }),
      '/v1/jobs',
      TICKET,
      409,
      'key-conflict',
      /another key/,
    ],
    ['engine away', stub({ submit: rejects(new EngineAway()) }), '/v1/jobs', TICKET, 503, 'engine-away', /safe/],
    ['store away', stub({ list: rejects(new StoreAway()) }), '/v1/jobs', {}, 503, 'store-away', /safe/],
    ['not healthy', stub({ check: rejects(new EngineAway()) }), '/healthz', {}, 503, 'engine-away', /safe/],
    [
      'bad cursor',
      stub({ list: rejects(new BadPosition('Begin again.')) }),
      '/v1/jobs?cursor=x',
      {},
      400,
      'bad-position',
      /again/,
    ],
    ['bad state', NOBODY, '/v1/jobs?state=lost', {}, 400, 'bad-request', /state/],
    ['bad limit', NOBODY, '/v1/jobs?limit=0', {}, 400, 'bad-request', /limit/],
    ['unknown job', stub({ get: () => Promise.resolve(null) }), '/v1/jobs/job_1', {}, 404, 'unknown-job', /id/],
    [
      'unknown job, events',
      stub({ get: () => Promise.resolve(null) }),
      '/v1/jobs/job_1/events',
      {},
      404,
      'unknown-job',
      /id/,
    ],
    [
      'unknown job, cancel',
      stub({ cancel: () => Promise.resolve(null) }),
      '/v1/jobs/job_1/cancel',
      { method: 'POST' },
      404,
      'unknown-job',
      /id/,
    ],
    [
      'bad position',
      NOBODY,
      '/v1/jobs/job_1/events',
      { headers: { 'last-event-id': 'x' } },
      400,
      'bad-position',
      /event/,
    ],
    [
      'unknown approval',
      stub({ answer: () => Promise.resolve(null) }),
      '/v1/approvals/apr_1',
      YES,
      404,
      'unknown-approval',
      /id/,
    ],
    ['an approval past its time', stale('expired'), '/v1/approvals/apr_1', YES, 409, 'approval-stale', /time/],
    ['an approval of an ended turn', stale('turn_ended'), '/v1/approvals/apr_1', YES, 409, 'approval-stale', /ended/],
    ['an approval gone by', stale('moved_on'), '/v1/approvals/apr_1', YES, 409, 'approval-stale', /gone on/],
    [
      'an event of an unknown session',
      stub({ report: () => Promise.resolve(null) }),
      '/v1/sessions/ses_1/events/build',
      post({}, JSON_BODY),
      404,
      'unknown-session',
      /id/,
    ],
    [
      'an event without a name',
      NOBODY,
      '/v1/sessions/ses_1/events/%20',
      post({}, JSON_BODY),
      400,
      'bad-request',
      /name/,
    ],
    [
      'an event with a field that there is not',
      NOBODY,
      '/v1/sessions/ses_1/events/build',
      post({ body: 'x' }, JSON_BODY),
      422,
      'bad-body',
      /body/,
    ],
    [
      'an answer to something else',
      answered({ kind: 'misfit', asks: 'outcome' }),
      APPROVAL,
      YES,
      422,
      'answer-misfit',
      /happened/,
    ],
    [
      'an outcome of a call that has not run',
      answered({ kind: 'misfit', asks: 'permission' }),
      APPROVAL,
      YES,
      422,
      'answer-misfit',
      /approved/,
    ],
    [
      'a late answer',
      answered({ kind: 'stale', why: 'settled' }),
      APPROVAL,
      YES,
      409,
      'approval-stale',
      /known meanwhile/,
    ],
    [
      'a note with an approval',
      NOBODY,
      APPROVAL,
      post({ answer: 'approved', by: 'pat', text: 'x' }),
      422,
      'bad-body',
      /text/,
    ],
    ['a message without a text', NOBODY, APPROVAL, post({ answer: 'message', by: 'pat' }), 422, 'bad-body', /text/],
    ['unknown address', NOBODY, '/v2', {}, 404, 'not-found', /openapi/],
    ['unknown method', NOBODY, '/v1/jobs/job_1', { method: 'DELETE' }, 405, 'method-not-allowed', /GET/],
    ['a fault of ours', NOBODY, '/v1/jobs', {}, 500, 'internal', /log/],
  ])('%s', async (_name, runs, path, init, status, type, detail) => {
    const response = await createApp(runs).request(path, init);
    const text = await response.text();
    expect(response.status, text).toBe(status);
    expect(response.headers.get('content-type')).toBe('application/problem+json');
    const problem = ProblemSchema.parse(JSON.parse(text));
    expect(problem).toMatchObject({ type: `urn:pawl:problem:${type}`, status });
    expect(problem.detail).toMatch(detail);
    expect(text).not.toMatch(/secret|at .*\.ts:/);
    expect(response.headers.has('retry-after')).toBe(status === 503);
  });
});

test('an event is told to the session by its name', async () => {
  const told: unknown[] = [];
  const runs = stub({
    report: (...args) => {
      told.push(args);
      return Promise.resolve({ id: 'e1', isNew: true, waits: 2, goal: null });
    },
  });
  const path = '/v1/sessions/ses_1/events/build%20is%20done';
  const response = await createApp(runs).request(path, post({ id: 'e1', text: 'green' }, JSON_BODY));
  expect([response.status, await response.json()]).toEqual([200, { id: 'e1', isNew: true, waits: 2, goal: null }]);
  expect(told).toEqual([['default', 'ses_1', { id: 'e1', name: 'build is done', text: 'green', by: 'api' }]]);
});

// Names of sub-agents' sessions have slashes, which an address may only hold encoded.
describe('a name with slashes in an address', () => {
  test.each([
    ['why', '/v1/turns/ses_1%2Fagent%2F1/1/why', undefined, ['default', 'ses_1/agent/1/1']],
    ['why', '/v1/turns/ses_1%2fagent%2f1%2fagent%2f2/3/why', undefined, ['default', 'ses_1/agent/1/agent/2/3']],
    ['session', '/v1/sessions/ses_1%2Fagent%2F1', undefined, ['default', 'ses_1/agent/1']],
    ['inputs', '/v1/sessions/ses_1%2Fagent%2F1/inputs', undefined, ['default', 'ses_1/agent/1', { waiting: false }]],
    [
      'report',
      '/v1/sessions/ses_1%2Fagent%2F1/events/a%2Fb',
      post({ id: 'e' }, JSON_BODY),
      ['default', 'ses_1/agent/1', { id: 'e', name: 'a/b', by: 'api' }],
    ],
  ] as const)('%s %s', async (verb, path, init, expected) => {
    const asked: unknown[] = [];
    const note = (...args: unknown[]) => {
      asked.push(args);
      return Promise.resolve(null);
    };
    const response = await createApp(stub({ [verb]: note })).request(path, init);
    expect([response.status, asked]).toEqual([404, [expected]]);
  });

  test('is described where a session or a turn is named', async () => {
    const document = await (await createApp(NOBODY).request('/openapi.json')).text();
    expect(document.match(/write each as `%2F`/g)?.length).toBeGreaterThan(5);
  });
});

test('what became of a call is answered with a note, or without one', async () => {
  const given: unknown[] = [];
  const runs = stub({
    answer: (...told) => {
      given.push(told);
      return Promise.resolve({ kind: 'recorded' });
    },
  });
  const bodies = [
    { answer: 'happened', by: 'pat', text: 'number 7' },
    { answer: 'again', by: 'pat' },
  ];
  for (const body of bodies) {
    const response = await createApp(runs).request(APPROVAL, post(body));
    expect(await response.json()).toEqual({ answer: body.answer, by: 'pat', isNew: true });
  }
  expect(given).toEqual(bodies.map((body) => ['default', 'out_1', body]));
});

test('a client that goes is let go', async () => {
  let left: AbortSignal | undefined;
  const runs = stub({
    get: () => Promise.resolve({} as never),
    async *events(_tenant, _job, request) {
      left = request?.signal;
      while (!left?.aborted) await new Promise((resolve) => setTimeout(resolve, 5));
      yield* [];
      return null;
    },
  });
  const response = await createApp(runs, { heartbeatMs: 10 }).request('/v1/jobs/job_1/events');
  const reader = response.body!.getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toBe(': still here\n\n');
  await reader.cancel();
  expect(left?.aborted).toBe(true);
});

// A page of another site can reach 127.0.0.1 through the browser, under its own name (DNS rebinding) or not.
describe('who may ask', () => {
  const app = createApp(stub({ check: () => Promise.resolve() }), { hosts: ['pawl.example'] });
  test.each<[Record<string, string>, number]>([
    [{ host: 'localhost:4600' }, 200],
    [{ host: '127.0.0.1:4600' }, 200],
    [{ host: '[::1]:4600' }, 200],
    [{ host: 'PAWL.example' }, 200],
    [{ host: 'evil.example' }, 403],
    [{ host: 'localhost.evil.example' }, 403],
    [{ host: '127.0.0.1:4600@evil.example' }, 403],
    [{ host: 'localhost:4600', origin: 'http://localhost:4600' }, 200],
    [{ host: 'localhost:4600', origin: 'http://localhost:3000' }, 403],
    [{ host: 'localhost:4600', origin: 'https://evil.example' }, 403],
    [{ host: 'localhost:4600', origin: 'null' }, 403],
  ])('%j: %d', async (headers, status) => {
    expect((await app.request('/healthz', { headers })).status).toBe(status);
  });
});

describe('the OpenAPI document', () => {
  test('names every route, and no other', async () => {
    const app = createApp(NOBODY);
    const document = (await (await app.request('/openapi.json')).json()) as {
      openapi: string;
      paths: Record<string, object>;
    };
    expect(document.openapi).toBe('3.1.0');
    const described = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const served = app.routes
      .filter(({ method, path }) => method !== 'ALL' && path.startsWith('/v1'))
      .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`);
    expect(described.toSorted()).toEqual([...new Set(served)].toSorted());
  });

  test('says which header and which problems a submit has', async () => {
    const document = (await (await createApp(NOBODY).request('/openapi.json')).json()) as OpenApi;
    const submit = document.paths['/v1/jobs']!.post!;
    expect(submit.parameters).toContainEqual(
      expect.objectContaining({ name: 'Idempotency-Key', in: 'header', required: true }),
    );
    expect(Object.keys(submit.responses)).toEqual([
      '200',
      '201',
      '400',
      '403',
      '409',
      '413',
      '415',
      '422',
      '500',
      '503',
    ]);
  });
});

interface OpenApi {
  readonly paths: Record<string, Record<string, { parameters: unknown[]; responses: object }>>;
}
