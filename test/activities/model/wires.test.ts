import { describe, expect, test, vi } from 'vitest';
import { C, callTools, chunks, D, F, hold, paced, PING, say, status, T, U, X } from '../../../testing/index.ts';
import {
  HI,
  KNOWN,
  NOTHING,
  portTo,
  provider,
  REQUEST,
  sample as sampleOn,
  UNKNOWN,
  WIRES,
  type Asking,
} from './at-a-provider.ts';

describe.each(WIRES)('over %s', (wire) => {
  const sample = (scripted: { baseUrl: string }, options: Asking = {}) => sampleOn(scripted, wire, options);

  describe('a reply', () => {
    test('calls', async () => {
      const scripted = await provider({
        script: [callTools([{ name: 'x', arguments: { a: 1 }, id: 'a1' }], { text: 'Look' })],
      });
      expect((await sample(scripted)).result).toEqual({
        kind: 'reply',
        finish: 'tool_calls',
        usage: KNOWN,
        text: 'Look',
        reasoning: '',
        calls: [{ id: 'a1', name: 'x', arguments: '{"a":1}' }],
        extra: {},
      });
    });

    test('characters split over chunks, comments in between', async () => {
      const scripted = await provider({ script: [paced(say('🎫 ü'), { byteByByte: true, commentsEveryMs: 1 })] });
      expect((await sample(scripted)).result).toMatchObject({ kind: 'reply', text: '🎫 ü', usage: KNOWN });
    });

    test('pings of any form are nothing', async () => {
      const frames = [
        PING,
        'data: : PROCESSING\n\n',
        'id: 1\n',
        C({ content: 'Hi' }),
        'data:\n\n',
        F('stop'),
        U(100, 10),
        D,
      ];
      const scripted = await provider({ script: [chunks(frames)] });
      expect((await sample(scripted)).result).toEqual({ kind: 'reply', finish: 'stop', usage: KNOWN, ...HI });
    });

    test('a whole answer leaves the connection open', async () => {
      const scripted = await provider({ script: [say('1'), say('2')] });
      await sample(scripted);
      await sample(scripted);
      await Promise.all(scripted.requests.map(({ settled }) => settled));
      expect(scripted.requests.map(({ closedAt }) => closedAt)).toEqual([null, null]);
    });
  });

  describe('a failure is a value', () => {
    const cut = { kind: 'transport', cause: 'cut', usage: UNKNOWN };
    const ended = { ...cut, note: 'transport: the stream ended without a finish reason' };
    const socket = { ...cut, note: 'transport: cut UND_ERR_SOCKET' };
    const half = T(0, 'a1', 'x', '{"path":"a.txt","text":"hel');

    test.each([
      ['cut in a call', chunks([half, X]), socket],
      ['cut after a whole call', chunks([T(0, 'a1', 'x', '{}'), X]), socket],
      ['cut after text', chunks([C({ content: 'Done.' }), X]), socket],
      ['cut in a frame', chunks([C({ content: 'x' }), 'data: {"choices":[{"del', X]), socket],
      ['cut after n chunks', paced(say('a b c'), { cutAfterChunks: 2 }), socket],
      ['ended in a call', chunks([half]), ended],
      ['ended in a frame', chunks([C({ content: 'x' }), 'data: {"choices":[{"del']), ended],
      ['ended before anything', chunks([]), ended],
      [
        'a frame that is no JSON',
        chunks(['data: {"choices":\n\n', D]),
        {
          kind: 'transport',
          cause: 'malformed',
          usage: UNKNOWN,
          note: 'transport: malformed: the stream could not be read',
        },
      ],
      [
        'an error in the stream',
        chunks([C({ content: 'x' }), { error: { code: 502, message: 'upstream broke' } }, D]),
        {
          kind: 'server_error',
          status: 502,
          final: false,
          usage: UNKNOWN,
          note: 'server_error 502: in the stream: upstream broke',
        },
      ],
      [
        'an error event',
        chunks(['event: error\ndata: {"message":"input is too long"}\n\n']),
        { kind: 'overflow', usage: UNKNOWN, note: 'overflow: in the stream: input is too long' },
      ],
      [
        'a 429',
        status(429, { error: { message: 'Slow down.' } }, { 'retry-after': '5' }),
        { kind: 'rate_limited', afterMs: 5_000, quota: false, usage: NOTHING, note: 'rate_limited 429: Slow down.' },
      ],
      [
        'a 500 as text',
        status(500, 'oops\nstack'),
        { kind: 'server_error', status: 500, final: false, usage: UNKNOWN, note: 'server_error 500: oops' },
      ],
      [
        'a body without an error object',
        status(400, { object: 'error', message: 'maximum context length is 4096' }),
        { kind: 'overflow', windowTokens: 4_096, usage: NOTHING, note: 'overflow 400: maximum context length is 4096' },
      ],
      [
        'the key in an answer',
        status(401, { error: { message: 'no access for test-key-1' } }),
        { kind: 'auth', status: 401, usage: NOTHING, note: 'auth 401: no access for ***' },
      ],
    ])('%s: one request', async (_name, reply, expected) => {
      const scripted = await provider({ script: [reply] });
      expect((await sample(scripted)).result).toEqual(expected);
      // Retries have one owner, and it is not the SDK (stacked retries made up to 45 requests of one failure).
      expect(scripted.requests).toHaveLength(1);
    });

    test('nobody listens', async () => {
      const scripted = await provider({});
      await scripted.close();
      const note = 'transport: connect ECONNREFUSED';
      expect((await sample(scripted)).result).toEqual({ kind: 'transport', cause: 'connect', usage: NOTHING, note });
    });

    test('a socket closed before the headers', async () => {
      const scripted = await provider({ script: [status(200)] });
      const drop: typeof fetch = (url, init) => {
        const going = fetch(url, init);
        return going.then(() => Promise.reject(Object.assign(new Error('x'), { code: 'ECONNRESET' })));
      };
      expect((await sample(scripted, { fetch: drop })).result).toMatchObject({
        kind: 'transport',
        cause: 'reset',
        usage: UNKNOWN,
      });
    });

    test.each<[string, () => string | undefined]>([
      ['absent', () => undefined],
      ['blank', () => '  '],
      [
        'from a source that fails',
        () => {
          throw new Error('vault at /secret/path');
        },
      ],
    ])('a key %s: no request', async (_name, apiKey) => {
      const scripted = await provider({});
      const expected = { kind: 'auth', status: 401, usage: NOTHING, note: 'auth: no API key is set' };
      expect((await sample(scripted, { apiKey })).result).toEqual(expected);
      scripted.assertDone();
    });

    test('the key is read for each request', async () => {
      const scripted = await provider({ script: [say('1'), say('2')] });
      const keys = ['key-a', 'key-b'];
      const apiKey = () => keys.shift();
      await sample(scripted, { apiKey });
      await sample(scripted, { apiKey });
      expect(scripted.requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer key-a', 'Bearer key-b']);
    });
  });

  describe('two clocks', () => {
    test('comments for ever are a stall, and the connection is closed', async () => {
      const stuck = paced(chunks([C({ content: 'x' })]), { commentsEveryMs: 5, hold: hold(), holdAt: 1 });
      const scripted = await provider({ script: [stuck] });
      const { result } = await sample(scripted, { clocks: { stallMs: 60 } });
      expect(result).toEqual({ kind: 'stalled', usage: UNKNOWN, note: 'stalled: no data for 60 ms' });
      const request = await scripted.arrived(0);
      await request.settled;
      expect(request.closedAt).not.toBeNull();
    });

    test('no headers are a stall too', async () => {
      const scripted = await provider({ script: [paced(say('x'), { hold: hold() })] });
      expect((await sample(scripted, { clocks: { stallMs: 30 } })).result).toMatchObject({
        kind: 'stalled',
        usage: UNKNOWN,
      });
    });

    test('data frames are progress, however long it takes', async () => {
      const scripted = await provider({ script: [paced(say('a b c d e f g h'), { betweenChunksMs: 80 })] });
      expect((await sample(scripted, { clocks: { stallMs: 600 } })).result).toMatchObject({
        kind: 'reply',
        text: 'a b c d e f g h',
      });
    });
  });

  describe('a cut', () => {
    test('in the stream: the provider sees the connection close, the partial text is kept, the bill is unknown', async () => {
      const scripted = await provider({ script: [paced(say('word '), { endless: true })] });
      const cancel = new AbortController();
      const heard: string[] = [];
      const port = portTo(scripted, wire);
      const result = await port.sample(REQUEST, {
        signal: cancel.signal,
        onDelta: (_channel, chunk) => {
          heard.push(chunk);
          if (heard.length === 3) cancel.abort();
        },
      });
      const abortedAt = Date.now();
      expect(result).toEqual({
        kind: 'cut',
        usage: UNKNOWN,
        text: heard.join(''),
        reasoning: '',
        calls: [],
        extra: {},
      });
      const request = await scripted.arrived(0);
      await request.settled;
      expect((request.closedAt ?? Number.POSITIVE_INFINITY) - abortedAt).toBeLessThan(1_500);
    });

    test('before the headers', async () => {
      const wait = hold();
      const scripted = await provider({ script: [paced(say('x'), { hold: wait })] });
      const cancel = new AbortController();
      const sampling = sample(scripted, { signal: cancel.signal });
      await wait.reached;
      cancel.abort();
      expect((await sampling).result).toMatchObject({ kind: 'cut', text: '', usage: UNKNOWN });
      const request = await scripted.arrived(0);
      await request.settled;
      expect(request.closedAt).not.toBeNull();
    });

    test('before the request: none is sent', async () => {
      const scripted = await provider({});
      expect((await sample(scripted, { signal: AbortSignal.abort() })).result).toMatchObject({
        kind: 'cut',
        usage: NOTHING,
      });
      scripted.assertDone();
    });
  });

  test('what the listener throws is no failure of the provider', async () => {
    const scripted = await provider({ script: [say('x')] });
    const port = portTo(scripted, wire);
    const onDelta = () => {
      throw new Error('our own');
    };
    await expect(port.sample(REQUEST, { signal: new AbortController().signal, onDelta })).rejects.toThrow('our own');
  });

  test('nothing is logged, whatever the environment says', async () => {
    vi.stubEnv('OPENAI_LOG', 'debug');
    const logged = [
      vi.spyOn(console, 'error'),
      vi.spyOn(console, 'debug'),
      vi.spyOn(console, 'info'),
      vi.spyOn(console, 'log'),
    ];
    const scripted = await provider({ script: [chunks(['data: {"choices":\n\n']), status(500, 'x')] });
    await sample(scripted);
    await sample(scripted);
    expect(logged.map((spy) => spy.mock.calls)).toEqual([[], [], [], []]);
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
  });
});
