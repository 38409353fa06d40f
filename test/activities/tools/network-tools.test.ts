import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Tool, ToolContext } from '../../../activities/tools/define-tool.ts';
import { httpGetTool } from '../../../activities/tools/http-get.ts';
import { httpRequestTool } from '../../../activities/tools/http-request.ts';
import { openPullRequestTool } from '../../../activities/tools/open-pull-request.ts';
import { call, contextFor } from './tool-context.ts';

type Route = (request: IncomingMessage, response: ServerResponse) => void;

let server: Server;
let base = '';
let route: Route;
let seen: { readonly at: string; readonly headers: IncomingMessage['headers']; readonly body: string }[];

beforeAll(async () => {
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (part) => {
      body += part;
    });
    request.on('end', () => {
      seen.push({ at: `${request.method} ${request.url}`, headers: request.headers, body });
      route(request, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

let context: ToolContext;
beforeEach(() => {
  seen = [];
  context = contextFor('/nowhere', { idempotencyKey: 'key-of-the-call' });
});

const json =
  (status: number, body: unknown, headers = {}): Route =>
  (_, response) =>
    void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
const gone: Route = (request) => void request.socket.destroy();

describe('http_get', () => {
  const get = httpGetTool({ allow: ['127.0.0.0/8'] });

  it('shows status, type and body', async () => {
    route = json(200, { a: 1 });
    expect(await call(get, { url: `${base}/x` }, context)).toEqual({
      isError: false,
      text: `HTTP 200 ${base}/x\ncontent-type: application/json\n\n{"a":1}`,
      note: 'HTTP 200',
    });
  });

  it('a refusal of the server, no answer, and a private address are results', async () => {
    route = json(404, {});
    expect(await call(get, { url: base }, context)).toMatchObject({ isError: true, note: 'HTTP 404' });
    route = gone;
    expect(await call(get, { url: base }, context)).toMatchObject({ isError: true, note: 'ECONNRESET' });
    expect(await call(httpGetTool({ allow: [] }), { url: base }, context)).toMatchObject({
      isError: true,
      note: 'private_address',
    });
  });

  it('binary is described, and a long body is kept whole', async () => {
    route = (_, response) => void response.end(Buffer.from([0, 1, 2, 255]));
    expect((await call(get, { url: base }, context)).text).toMatch(
      /\[Binary output, not shown\. The whole output is 4 bytes/,
    );
    route = (_, response) => void response.end('x'.repeat(50_000));
    const long = await call(get, { url: base }, context);
    expect(long.output?.length).toBe(50_000);
  });
});

describe('http_request', () => {
  const send = httpRequestTool({ allow: ['127.0.0.0/8'] });

  it('sends the key of the call, whatever key the model made up', async () => {
    route = json(201, {});
    await call(
      send,
      { url: `${base}/x`, method: 'POST', body: 'b', headers: { 'Idempotency-Key': 'mine', 'x-a': '1' } },
      context,
    );
    expect(seen[0]).toMatchObject({
      at: 'POST /x',
      body: 'b',
      headers: { 'idempotency-key': 'key-of-the-call', 'x-a': '1' },
    });
  });

  it('an answer that is lost is thrown: nobody knows', async () => {
    route = gone;
    await expect(call(send, { url: base, method: 'POST' }, context)).rejects.toMatchObject({ code: 'ECONNRESET' });
    route = json(504, {});
    await expect(call(send, { url: base, method: 'DELETE' }, context)).rejects.toMatchObject({ code: 'HTTP 504' });
  });

  it('a request that never left is a result, and so is an attempt that may not act any more', async () => {
    expect(await call(send, { url: 'http://127.0.0.1:1/', method: 'POST' }, context)).toMatchObject({
      isError: true,
      note: 'ECONNREFUSED',
    });
    expect(await call(send, { url: base, method: 'POST' }, { ...context, mayAct: () => false })).toMatchObject({
      isError: true,
      note: 'aborted',
    });
    expect(seen).toEqual([]);
  });
});

describe('open_pull_request', () => {
  const tool = () => openPullRequestTool({ baseUrl: base, tokenEnv: 'TEST_FORGE', requestMs: 300 });
  const args = { repo: 'acme/app', head: 'fix', base: 'main', title: 'T', body: '' };
  const pull = (number: number, change = {}) => ({
    number,
    html_url: `http://forge/${number}`,
    state: 'open',
    head: { ref: 'fix', label: 'acme:fix' },
    base: { ref: 'main' },
    ...change,
  });
  const ask = async (of: Tool, before: readonly number[] | null) =>
    await of.reconcile?.(args, { ...context, details: { head: 'acme:fix', before } });

  beforeEach(() => {
    process.env.TEST_FORGE = 'test-forge-token';
    return () => void delete process.env.TEST_FORGE;
  });

  it('notes what was there before, posts, and says number and address', async () => {
    route = (request, response) =>
      (request.method === 'GET' ? json(200, [pull(3, { state: 'closed' })]) : json(201, pull(7)))(request, response);
    expect(await tool().prepare?.(args, context)).toEqual({ head: 'acme:fix', before: [3] });
    expect(await tool().run(args, context)).toEqual({
      isError: false,
      text: 'Pull request #7 is open: http://forge/7',
      note: '#7',
    });
    expect(seen.map(({ at }) => at)).toEqual([
      'GET /repos/acme/app/pulls?head=acme%3Afix&base=main&state=all&per_page=100',
      'POST /repos/acme/app/pulls',
    ]);
    expect(seen[1]?.headers.authorization).toBe('Bearer test-forge-token');
    expect(JSON.parse(seen[1]?.body ?? '')).toEqual({ title: 'T', body: '', head: 'fix', base: 'main' });
  });

  it.each([
    ['one that is open', [pull(7)], null, 'done'],
    ['one that is new and closed already', [pull(7, { state: 'closed' })], [], 'done'],
    ['one that was closed before', [pull(3, { state: 'closed' })], [3], 'absent'],
    ['a closed one, and nobody noted what was there before', [pull(3, { state: 'closed' })], null, 'unknown'],
    ['none', [], [], 'absent'],
    // A forge that does not know the filter answers with all.
    [
      'others only',
      [
        pull(1, { head: { ref: 'other' } }),
        pull(2, { base: { ref: 'dev' } }),
        pull(4, { head: { ref: 'fix', label: 'eve:fix' } }),
      ],
      [],
      'absent',
    ],
    ['something else', { message: 'hello' }, [], 'unknown'],
  ])('asked for its branch the forge has %s', async (_, pulls, before, kind) => {
    route = json(200, pulls);
    expect((await ask(tool(), before))?.kind).toBe(kind);
  });

  it.each([
    ['an error', json(500, {})],
    ['no such thing', json(501, {})],
    ['nothing', gone],
  ])('asked for its branch the forge answers %s: unknown', async (_, answer) => {
    route = answer;
    expect((await ask(tool(), []))?.kind).toBe('unknown');
  });

  it.each([
    ['500', json(500, {})],
    ['504', json(504, {})],
    ['408', json(408, {})],
    ['a broken body', (_: IncomingMessage, response: ServerResponse) => void response.writeHead(201).end('{"number":')],
    ['nothing', gone],
    ['silence', () => {}],
  ])('posting is answered by %s: nobody knows', async (_, answer) => {
    route = answer;
    await expect(tool().run(args, context)).rejects.toMatchObject({ name: 'OutcomeUnknown' });
  });

  it('a forge that has one already is no error, and one that refuses is', async () => {
    route = (request, response) =>
      (request.method === 'GET'
        ? json(200, [pull(5)])
        : json(422, { errors: [{ message: 'A pull request already exists for acme:fix.' }] }))(request, response);
    expect(await tool().run(args, context)).toMatchObject({ isError: false, note: '#5' });
    route = json(403, { message: 'no' });
    expect(await tool().run(args, context)).toMatchObject({ isError: true, note: 'HTTP 403' });
  });

  it('without its token nothing is sent', async () => {
    delete process.env.TEST_FORGE;
    expect(await tool().run(args, context)).toMatchObject({ isError: true, note: 'no_token' });
    expect(seen).toEqual([]);
  });

  it.each([
    { repo: 'acme' },
    { repo: '../x' },
    { repo: 'a/b/c' },
    { head: 'a..b' },
    { head: '-x' },
    { base: 'a b' },
    { base: 'x:y' },
  ])('%j is refused', async (bad) => {
    await expect(call(tool(), { ...args, ...bad }, context)).rejects.toThrow('did not run, because of its arguments');
  });
});
