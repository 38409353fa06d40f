import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Fetched, guardedFetch, type GuardOptions } from '../../../activities/net/guarded-fetch.ts';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

let server: Server;
let port = 0;
let answers: Record<string, Answer> = {};
let seen: { readonly at: string; readonly headers: IncomingMessage['headers']; readonly body: string }[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (part) => {
      body += part;
    });
    request.on('end', () => {
      seen.push({ at: `${request.method} ${request.headers.host} ${request.url}`, headers: request.headers, body });
      (answers[request.url ?? ''] ?? ((_, out) => out.end('fine')))(request, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
});
afterAll(() => void server.close());
beforeEach(() => {
  answers = {};
  seen = [];
});

const options = (change: Partial<GuardOptions> = {}): GuardOptions => ({
  signal: new AbortController().signal,
  // Every name is this machine; only the tests that say so may go there.
  resolve: () => Promise.resolve(['127.0.0.1']),
  allow: [`one.test:${port}`, `two.test:${port}`],
  timeoutMs: 5_000,
  ...change,
});
const one = (path = '/') => `http://one.test:${port}${path}`;
const get = (url: string, change?: Partial<GuardOptions>) => guardedFetch(url, { method: 'GET' }, options(change));
const post = (url: string, change?: Partial<GuardOptions>) =>
  guardedFetch(
    url,
    {
      method: 'POST',
      headers: { authorization: 'Bearer test-1', 'content-type': 'text/plain', 'x-other': 'o' },
      body: 'the body',
    },
    options(change),
  );
const short = (fetched: Fetched) =>
  fetched.kind === 'answered' ? `answered ${fetched.status} ${fetched.body}` : `${fetched.kind} ${fetched.note}`;
const redirect =
  (status: number, location: string): Answer =>
  (_, response) =>
    void response.writeHead(status, { location }).end();

describe('where it goes', () => {
  it('connects to what was resolved, and names the host as it was called', async () => {
    const asked: string[] = [];
    const resolve = (host: string) => {
      asked.push(host);
      return Promise.resolve(['127.0.0.1']);
    };
    expect(short(await get(one('/path?q=1'), { resolve }))).toBe('answered 200 fine');
    expect(seen.map(({ at }) => at)).toEqual([`GET one.test:${port} /path?q=1`]);
    expect(asked).toEqual(['one.test']);
  });

  it.each([
    ['http://three.test/', 'refused private_address'],
    ['http://127.0.0.1/', 'refused private_address'],
    ['http://2130706433/', 'refused private_address'],
    ['http://0x7f.1/', 'refused private_address'],
    ['http://[::1]/', 'refused private_address'],
    ['http://[::ffff:169.254.169.254]/', 'refused private_address'],
    ['ftp://one.test/', 'refused bad_request'],
    ['file:///etc/passwd', 'refused bad_request'],
    ['http://user:pw@one.test/', 'refused bad_request'],
    ['/relative', 'refused bad_request'],
  ])('%s: %s', async (url, expected) => {
    expect(short(await get(url))).toBe(expected);
    expect(seen).toEqual([]);
  });

  it('one private address among public ones is refused', async () => {
    expect(short(await get('http://mixed.test/', { resolve: () => Promise.resolve(['1.1.1.1', '10.0.0.1']) }))).toBe(
      'refused private_address',
    );
  });

  // DNS rebinding: a name that is public when it is looked at and private when it is connected to.
  it('a name is resolved once, so another answer later changes nothing', async () => {
    const answersOf = [['192.0.2.1'], ['127.0.0.1']];
    let asked = 0;
    const resolve = () => Promise.resolve(answersOf[asked++] ?? []);
    expect(
      short(await get(`http://rebind.test:${port}/`, { resolve, allow: ['192.0.2.0/24'], timeoutMs: 300 })),
    ).toMatch(/^never_sent/);
    expect(asked).toBe(1);
    expect(seen).toEqual([]);
  });
});

describe('redirects', () => {
  it('to a private address are refused, however the first one was', async () => {
    answers['/away'] = redirect(302, 'http://three.test/');
    answers['/metadata'] = redirect(307, 'http://169.254.169.254/latest');
    answers['/file'] = redirect(302, 'file:///etc/passwd');
    expect(short(await get(one('/away')))).toBe('refused private_address');
    expect(short(await get(one('/metadata')))).toBe('refused private_address');
    expect(short(await get(one('/file')))).toBe('refused bad_request');
  });

  it('to another origin lose what proves who asks, and keep the rest', async () => {
    answers['/two'] = redirect(307, `http://two.test:${port}/end`);
    await post(one('/two'));
    expect(seen.map(({ at, body, headers }) => [at, body, headers.authorization, headers['x-other']])).toEqual([
      [`POST one.test:${port} /two`, 'the body', 'Bearer test-1', 'o'],
      [`POST two.test:${port} /end`, 'the body', undefined, 'o'],
    ]);
  });

  it.each([
    [301, 'GET', ''],
    [302, 'GET', ''],
    [303, 'GET', ''],
    [307, 'POST', 'the body'],
    [308, 'POST', 'the body'],
  ])('a POST after %i is a %s', async (status, method, body) => {
    answers['/go'] = redirect(status, '/end');
    expect(short(await post(one('/go')))).toBe('answered 200 fine');
    expect(seen[1]?.at).toBe(`${method} one.test:${port} /end`);
    expect(seen[1]?.body).toBe(body);
    expect(seen[1]?.headers['content-type']).toBe(method === 'GET' ? undefined : 'text/plain');
  });

  it('a POST that was answered and then led nowhere has acted', async () => {
    answers['/done'] = redirect(303, 'http://three.test/');
    expect(short(await post(one('/done')))).toBe('unknown_after_send private_address');
    answers['/moved'] = redirect(308, 'http://three.test/');
    expect(short(await post(one('/moved')))).toBe('refused private_address');
  });

  it('five are followed, a sixth is not', async () => {
    for (let n = 0; n < 6; n++) answers[`/${n}`] = redirect(302, `/${n + 1}`);
    expect(short(await get(one('/1')))).toBe('answered 200 fine');
    expect(short(await get(one('/0')))).toBe('refused too_many_redirects');
  });
});

describe('what is known when it fails', () => {
  it.each([
    [
      'a gateway answers',
      (_: IncomingMessage, response: ServerResponse) => void response.writeHead(504).end(),
      'unknown_after_send HTTP 504',
      'answered 504 ',
    ],
    [
      'the server closes',
      (request: IncomingMessage) => void request.socket.destroy(),
      'unknown_after_send ECONNRESET',
      'unknown_after_send ECONNRESET',
    ],
    ['nothing comes', () => {}, 'unknown_after_send aborted', 'unknown_after_send aborted'],
    [
      'the server says no',
      (_: IncomingMessage, response: ServerResponse) => void response.writeHead(422).end('no'),
      'answered 422 no',
      'answered 422 no',
    ],
  ])('%s', async (_, answer, posted, got) => {
    answers['/'] = answer;
    expect(short(await post(one(), { timeoutMs: 300 }))).toBe(posted);
    expect(short(await get(one(), { timeoutMs: 300 }))).toBe(got);
  });

  it('nobody listens, nobody knows the name, and an attempt that is over: nothing was sent', async () => {
    expect(short(await post('http://one.test:1/', { allow: ['one.test'] }))).toBe('never_sent ECONNREFUSED');
    const resolve = () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOTFOUND' }));
    expect(short(await post(one(), { resolve }))).toBe('never_sent ENOTFOUND');
    expect(short(await post(one(), { maySend: () => false }))).toBe('never_sent aborted');
    expect(short(await post(one(), { signal: AbortSignal.abort() }))).toBe('never_sent AbortError');
    expect(seen).toEqual([]);
  });

  it('headers that are the connection’s business are refused', async () => {
    for (const headers of [
      { Host: 'evil' },
      { 'Transfer-Encoding': 'chunked' },
      { 'x-a': 'b\r\nx-c: d' },
      { 'bad name': 'x' },
    ]) {
      expect(short(await guardedFetch(one(), { method: 'GET', headers }, options()))).toBe('refused bad_request');
    }
    expect(seen).toEqual([]);
  });
});

it('an endless body is cut, and one that breaks off is said to be broken', async () => {
  answers['/endless'] = (_, response) => {
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(65_536)));
    };
    response.on('drain', more);
    response.on('error', () => {});
    more();
  };
  answers['/broken'] = (_, response) => {
    response.writeHead(201, { 'content-length': '100' });
    response.write('half', () => setTimeout(() => response.destroy(), 20));
  };
  expect(await get(one('/endless'), { maxBytes: 100_000 })).toMatchObject({
    kind: 'answered',
    whole: 'cut',
    body: { length: 100_000 },
  });
  expect(await post(one('/broken'))).toMatchObject({ kind: 'answered', status: 201, whole: 'broken' });
});
