import { describe, expect, test } from 'vitest';
import type { ModelResult } from '../../../activities/model/port.ts';
import {
  C,
  chunks,
  D,
  F,
  type Frame,
  hold,
  paced,
  PING,
  say,
  status,
  T,
  U,
  type WireName,
  X,
} from '../../../testing/index.ts';
import { type Asking, NOTHING, provider, sample, UNKNOWN, WIRES } from './at-a-provider.ts';

/** What these frames amount to, over real HTTP; it takes exactly one request. */
async function resultOf(wire: WireName, frames: readonly Frame[], options: Asking = {}): Promise<ModelResult> {
  const scripted = await provider({ script: [chunks(frames)] });
  const { result } = await sample(scripted, wire, options);
  scripted.assertDone();
  expect(scripted.requests).toHaveLength(1);
  return result;
}

const callsOf = (result: ModelResult) =>
  result.kind === 'reply' ? result.calls.map(({ id, name, arguments: args }) => [id, name, args]) : result.kind;

const MALFORMED = 'transport';
type Row = readonly [name: string, frames: readonly Frame[], calls: unknown];
const get = (id: string, n: number) => [id, 'ticket_get', `{"id":${n}}`];

const BOTH: readonly Row[] = [
  [
    'two ids, one index',
    [T(0, 'a1', 'ticket_get', '{"id":11}'), T(0, 'a2', 'ticket_get', '{"id":12}')],
    [get('a1', 11), get('a2', 12)],
  ],
  [
    'a continuation without an id under another index',
    [
      T(0, 'a1', 'ticket_get', '{"id":'),
      T(0, '-', '-', '11}'),
      T(0, 'a2', 'note_add', ''),
      T(1, '-', '-', '{"text":"x"}'),
    ],
    [get('a1', 11), ['a2', 'note_add', '{"text":"x"}']],
  ],
  [
    'no index anywhere',
    [T('-', 'a1', 'ticket_get', '{"id":11}'), T('-', 'a2', 'ticket_get', '{"id":12}')],
    [get('a1', 11), get('a2', 12)],
  ],
  [
    'no index, the pieces in order',
    [
      T('-', 'a1', 'ticket_get', '{"id":'),
      T('-', '-', '-', '11}'),
      T('-', 'a2', 'ticket_get', '{"id":'),
      T('-', '-', '-', '12}'),
    ],
    [get('a1', 11), get('a2', 12)],
  ],
  [
    'pieces of two calls in turns, by index',
    [
      T(0, 'a1', 'ticket_get', '{"id"'),
      T(1, 'a2', 'ticket_get', '{"id"'),
      T(0, '-', '-', ':11}'),
      T(1, '-', '-', ':12}'),
    ],
    [get('a1', 11), get('a2', 12)],
  ],
  ['pieces by id, whatever the index', [T(0, 'a1', 'ticket_get', '{"id":'), T(1, 'a1', '-', '11}')], [get('a1', 11)]],
  [
    'no ids at all',
    [T(0, '-', 'ticket_get', '{"id":11}'), T(1, '-', 'ticket_get', '{"id":12}')],
    [get('', 11), get('', 12)],
  ],
  [
    'two whole calls with one id',
    [T(0, 'a1', 'ticket_get', '{"id":11}'), T(1, 'a1', 'ticket_get', '{"id":12}')],
    [get('a1', 11), get('a1', 12)],
  ],
  ['two objects as one piece', [T(0, 'a1', 'x', '{"a":1}{"b":2}')], [['a1', 'x', '{"a":1}{"b":2}']]],
  // Never run glued arguments.
  ['a second object for a finished call', [T(0, 'a1', 'x', '{"id":11}'), T(0, '-', '-', '{"id":12}')], MALFORMED],
  ['arguments of nobody', [T(0, '-', '-', '{"id":11}')], MALFORMED],
  ['a call without a name', [T(0, 'a1', '-', '{"id":11}')], MALFORMED],
  ...['', '   ', 'null', '[]', '{"path":"a', 'not json'].map(
    (args): Row => [`arguments ${JSON.stringify(args)}`, [T(0, 'a1', 'x', args)], [['a1', 'x', args]]],
  ),
  ['absent arguments', [T(0, 'a1', 'x', '-')], [['a1', 'x', '']]],
];

/** The Responses API names an item once, when it is added. */
const CHAT_ONLY: readonly Row[] = [
  ['a name in pieces', [T(0, 'a1', 'ticket', ''), T(0, '-', '_get', ''), T(0, '-', '-', '{"id":11}')], [get('a1', 11)]],
  ['an id that comes late', [T(0, '-', 'ticket_get', ''), T(0, 'a1', '-', '{"id":11}')], [get('a1', 11)]],
  [
    'a new name in the middle of arguments',
    [T(0, 'a1', 'ticket_get', '{"id":'), T(0, '-', 'note_add', '1}')],
    MALFORMED,
  ],
];

describe.each(WIRES)('calls over %s', (wire) => {
  test.each(wire === 'chat' ? [...BOTH, ...CHAT_ONLY] : BOTH)('%s', async (_name, frames, expected) => {
    expect(callsOf(await resultOf(wire, [...frames, F('tool_calls'), U(7, 3), D]))).toEqual(expected);
  });
});

describe.each(WIRES)('the finish over %s', (wire) => {
  const call = T(0, 'a1', 'x', '{}');
  const two = [C({ content: 'Looking' }), call, T(1, 'a2', 'x', '{}')];
  const own = wire === 'chat';
  test.each<[string, readonly Frame[], string, number]>([
    // Only whether calls exist decides; chat completions' own word is kept as it came.
    ['"stop" with calls', [...two, F('stop'), D], own ? 'stop' : 'tool_calls', 2],
    ['no reason with calls', [...two, D], 'tool_calls', 2],
    ['an unknown reason with calls', [...two, F('other'), D], 'tool_calls', 2],
    ['"tool_calls" without calls', [F('tool_calls'), D], own ? 'tool_calls' : 'stop', 0],
    ['"length" with a call', [call, F('length'), D], 'length', 1],
    ['"length" with text', [C({ content: 'Hi' }), F('length'), D], 'length', 0],
    ['a content filter', [C({ content: 'Hi' }), F('content_filter'), D], 'content_filter', 0],
    ['a refusal', [C({ refusal: 'No.' }), F('stop'), D], 'content_filter', 0],
    ['no reason with text', [C({ content: 'Hi' }), D], 'stop', 0],
  ])('%s', async (_name, frames, finish, calls) => {
    const result = await resultOf(wire, frames);
    expect(result.kind === 'reply' && [result.finish, result.calls.length]).toEqual([finish, calls]);
  });

  test('a reason that says that it failed', async () => {
    expect(await resultOf(wire, [C({ content: 'Hi' }), F('error'), U(7, 3), D])).toMatchObject({
      kind: 'server_error',
      final: false,
    });
  });
});

describe.each(WIRES)('usage over %s', (wire) => {
  const said = [C({ content: 'Hi' }), F('stop')];
  const usage = { inputTokens: 7, cachedTokens: 0, outputTokens: 3, reasoningTokens: 0, complete: true };
  const details = {
    prompt_tokens: 7,
    completion_tokens: 3,
    prompt_tokens_details: { cached_tokens: 5 },
    completion_tokens_details: { reasoning_tokens: 2 },
  };
  test.each<[string, readonly Frame[], unknown]>([
    ['late', [...said, U(7, 3), D], usage],
    ['cumulative', [U(7, 1), C({ content: 'H' }), U(7, 2), C({ content: 'i' }), F('stop'), U(7, 3), D], usage],
    ['with details', [...said, { choices: [], usage: details }, D], { ...usage, cachedTokens: 5, reasoningTokens: 2 }],
    // Never a made-up zero cost.
    ['missing', [...said, D], UNKNOWN],
    ['zero', [...said, U(0, 0), D], UNKNOWN],
    ['zero output for a text', [...said, U(7, 0), D], { ...usage, outputTokens: 0, complete: false }],
  ])('%s', async (_name, frames, expected) => {
    expect(await resultOf(wire, frames)).toMatchObject({ kind: 'reply', usage: expected });
  });
});

describe.each(WIRES)('a stream over %s', (wire) => {
  const half = T(0, 'a1', 'file_write', '{"path":"a.txt","text":"hel');
  test.each<[string, readonly Frame[], object]>([
    ['cut in a call', [half, X], { kind: 'transport', cause: 'cut' }],
    ['cut after a whole call', [T(0, 'a1', 'x', '{}'), X], { kind: 'transport', cause: 'cut' }],
    ['that just ends after text', [C({ content: 'Done.' })], { kind: 'transport', cause: 'cut' }],
    ['cut in a frame', [C({ content: 'x' }), 'data: {"choices":[{"del', X], { kind: 'transport', cause: 'cut' }],
    [
      'with a frame that is no JSON',
      [C({ content: 'x' }), 'data: <html>\n\n', D],
      { kind: 'transport', cause: 'malformed' },
    ],
    ['with a frame that is no object', ['data: 7\n\n', D], { kind: 'transport', cause: 'malformed' }],
    [
      'with an error that is overflow',
      [C({ content: 'x' }), { error: { message: 'input is too long' } }],
      { kind: 'overflow' },
    ],
    [
      'with an error that is a rate limit',
      [{ error: { code: 'rate_limit_exceeded', message: 'try again in 2s' } }],
      { kind: 'rate_limited', afterMs: 2_000, quota: false },
    ],
    [
      'with an error that is an overload',
      [{ error: { code: 'overloaded_error', message: 'Overloaded' } }],
      { kind: 'overloaded', status: 529, afterMs: null },
    ],
    [
      'with an error that is nothing known',
      [half, { error: { message: 'broke' } }, D],
      { kind: 'server_error', status: 500, final: false },
    ],
    [
      'with an error that is a bad request',
      [{ error: { code: 'invalid_prompt', message: 'no' } }],
      { kind: 'invalid_request', status: 400 },
    ],
    ['with an error about an image', [{ error: { code: 'image_too_large', message: 'no' } }], { kind: 'too_large' }],
  ])('%s: a failed attempt, its cost unknown, nothing of it usable', async (_name, frames, expected) => {
    const result = await resultOf(wire, frames);
    expect(result).toEqual({ ...expected, usage: UNKNOWN, note: expect.any(String) as string });
    expect(result).not.toHaveProperty('calls');
  });

  test('one byte at a time, with comments, blank lines and wrapped comments in it', async () => {
    const frames = [
      PING,
      '\n\n',
      'data: : PROCESSING\n\n',
      'id: 7\n',
      C({ content: '🎫 ü' }),
      ': ping\n\n',
      T(0, 'a1', 'x', '{"a":"ß'),
      T(0, '-', '-', '🎟"}'),
      F('tool_calls'),
      U(7, 3),
      D,
    ];
    const scripted = await provider({ script: [paced(chunks(frames), { byteByByte: true })] });
    const { result } = await sample(scripted, wire);
    expect(result).toMatchObject({
      kind: 'reply',
      text: '🎫 ü',
      calls: [{ id: 'a1', name: 'x', arguments: '{"a":"ß🎟"}' }],
    });
  });
});

describe.each(WIRES)('a status over %s', (wire) => {
  const error = (message: string, fields: object = {}) => ({ error: { message, ...fields } });
  const nested = error('Provider returned error', {
    metadata: { raw: '{"error":{"message":"maximum context length is 262144 tokens"}}' },
  });
  const wait = (afterMs: number | null, quota = false) => ({ kind: 'rate_limited', afterMs, quota });
  const soon = new Date(Math.ceil(Date.now() / 1_000) * 1_000 + 30_000);
  test.each<[string, number, unknown, Record<string, string>, object]>([
    [
      'overflow by numbers',
      400,
      error('maximum context length is 8192, you sent 9001'),
      {},
      { kind: 'overflow', windowTokens: 8_192 },
    ],
    ['overflow nested in a string', 400, nested, {}, { kind: 'overflow', windowTokens: 262_144 }],
    [
      'more than the limit for a minute',
      429,
      error('Limit 30000, Requested 41000', { code: 'rate_limit_exceeded' }),
      {},
      { kind: 'overflow', windowTokens: 30_000 },
    ],
    ['throttling that talks of tokens', 429, error('too many tokens, please wait'), {}, wait(null)],
    ['413', 413, '', {}, { kind: 'too_large' }],
    ['an image', 400, error('image too large'), {}, { kind: 'too_large' }],
    ['401', 401, error('bad key'), {}, { kind: 'auth', status: 401 }],
    ['403', 403, error('not here'), {}, { kind: 'invalid_request', status: 403 }],
    ['404', 404, error('no such model'), {}, { kind: 'invalid_request', status: 404 }],
    ['422', 422, error('bad'), {}, { kind: 'invalid_request', status: 422 }],
    ['429', 429, error('slow down'), {}, wait(null)],
    ['429, seconds', 429, error('slow down'), { 'retry-after': '5' }, wait(5_000)],
    ['429, negative', 429, error('slow down'), { 'retry-after': '-5' }, wait(null)],
    ['429, abc', 429, error('slow down'), { 'retry-after': 'abc' }, wait(null)],
    ['429, days', 429, error('monthly limit reached'), { 'retry-after': '277000' }, wait(277_000_000, true)],
    [
      '429, vetoed',
      429,
      error('slow down'),
      { 'x-should-retry': 'false' },
      { kind: 'server_error', status: 429, final: true },
    ],
    ['503, throttled', 503, error('being throttled'), {}, { kind: 'overloaded', status: 503, afterMs: null }],
    [
      '529, seconds',
      529,
      error('Overloaded'),
      { 'retry-after': '7' },
      { kind: 'overloaded', status: 529, afterMs: 7_000 },
    ],
  ])('%s', async (_name, code, body, headers, expected) => {
    const scripted = await provider({ script: [status(code, body, headers)] });
    const { result } = await sample(scripted, wire);
    // Turned away at the door: nothing was generated, so nothing is owed.
    expect(result).toEqual({ ...expected, usage: NOTHING, note: expect.any(String) as string });
    expect(scripted.requests).toHaveLength(1);
  });

  test.each<[string, number, Record<string, string>, object]>([
    ['408', 408, {}, { kind: 'invalid_request', status: 408 }],
    ['500', 500, {}, { kind: 'server_error', status: 500, final: false }],
    ['500, vetoed', 500, { 'x-should-retry': 'false' }, { kind: 'server_error', status: 500, final: true }],
  ])('%s: what it cost is not known', async (_name, code, headers, expected) => {
    const scripted = await provider({ script: [status(code, 'x', headers)] });
    expect((await sample(scripted, wire)).result).toEqual({
      ...expected,
      usage: UNKNOWN,
      note: expect.any(String) as string,
    });
    expect(scripted.requests).toHaveLength(1);
  });

  test('429 with an HTTP date', async () => {
    const scripted = await provider({ script: [status(429, 'x', { 'retry-after': soon.toUTCString() })] });
    const { result } = await sample(scripted, wire, { now: () => soon.getTime() - 12_000 });
    expect(result).toMatchObject(wait(12_000));
  });
});

describe.each(WIRES)('clocks over %s', (wire) => {
  // Trap: comments that count as progress keep a dead generation alive; comments that don't count at all cut a long think.
  test('comments for a while, then an answer', async () => {
    const wait = hold();
    const scripted = await provider({
      script: [paced(say('At last.'), { commentsEveryMs: 5, hold: wait, holdAt: 0 })],
    });
    const asked = sample(scripted, wire, { clocks: { stallMs: 5_000 } });
    await wait.reached;
    setTimeout(() => wait.release(), 60);
    expect((await asked).result).toMatchObject({ kind: 'reply', text: 'At last.' });
  });

  test('silence in the middle is a stall', async () => {
    const scripted = await provider({ script: [paced(say('One two'), { hold: hold(), holdAt: 2 })] });
    expect((await sample(scripted, wire, { clocks: { stallMs: 40 } })).result).toEqual({
      kind: 'stalled',
      usage: UNKNOWN,
      note: 'stalled: no data for 40 ms',
    });
  });

  // Data that says nothing feeds the clock as well: only the total ends it.
  test('empty data for ever comes to an end', async () => {
    const scripted = await provider({ script: [paced(chunks([C({ content: '' })]), { endless: true })] });
    expect((await sample(scripted, wire, { clocks: { totalMs: 80 } })).result).toEqual({
      kind: 'stalled',
      usage: UNKNOWN,
      note: 'stalled: not over after 80 ms',
    });
    const request = await scripted.arrived(0);
    await request.settled;
    expect(request.closedAt).not.toBeNull();
  });
});

describe.each(WIRES)('an endless output over %s', (wire) => {
  const sentence = 'I will look at the file again to be sure that it is right. ';
  const endless = (delta: Record<string, unknown>) => paced(chunks([C(delta)]), { endless: true });

  test.each([
    ['text', { content: sentence.repeat(10) }],
    ['reasoning', { reasoning_content: sentence.repeat(10) }],
  ])('of %s that repeats itself is stopped on the wire', async (_name, delta) => {
    const scripted = await provider({ script: [endless(delta)] });
    const { result } = await sample(scripted, wire, { request: { outputTokens: 4_096 } });
    expect(result).toEqual({ kind: 'doom_loop', usage: UNKNOWN, note: 'doom_loop: the model repeats itself' });
    const request = await scripted.arrived(0);
    await request.settled;
    expect(request.closedAt).not.toBeNull();
  });

  test('that nobody watches is taken as it is, up to what its cap can ever hold', async () => {
    const scripted = await provider({ script: [endless({ content: sentence.repeat(10) })] });
    const { result } = await sample(scripted, wire, { request: { watchRepetition: false, outputTokens: 100 } });
    expect(result).toMatchObject({ kind: 'reply', finish: 'length', usage: { complete: false } });
    expect(result.kind === 'reply' && result.text.length).toBeGreaterThan(6_400);
    const request = await scripted.arrived(0);
    await request.settled;
    expect(request.closedAt).not.toBeNull();
  });

  test('of arguments: a call that counts as cut', async () => {
    const begin = T(0, 'a1', 'x', '{"text":"');
    const scripted = await provider({
      script: [
        paced(chunks([begin, ...Array.from({ length: 200 }, (_, n) => T(0, '-', '-', `${n} `.repeat(20)))]), {}),
      ],
    });
    const { result } = await sample(scripted, wire, { request: { outputTokens: 50 } });
    expect(result).toMatchObject({ kind: 'reply', finish: 'length', calls: [{ id: 'a1' }] });
  });
});
