import { describe, expect, test } from 'vitest';
import { classify } from '../../../activities/model/classify.ts';
import type { ProviderFailure } from '../../../workflows/core/sample-outcome.ts';

const NOW = Date.parse('2026-11-02T10:00:00Z');
const error = (message: string, fields: Record<string, unknown> = {}) => ({ error: { message, ...fields } });

function answer(status: number, body: unknown, headers: Record<string, string> = {}): ProviderFailure {
  return classify({ kind: 'answer', status, headers: new Headers(headers), body }, NOW).failure;
}

const wait = (afterMs: number | null, quota = false): ProviderFailure => ({ kind: 'rate_limited', afterMs, quota });
const OVERFLOW: ProviderFailure = { kind: 'overflow' };
const window = (windowTokens: number): ProviderFailure => ({ kind: 'overflow', windowTokens });
const TOO_LARGE: ProviderFailure = { kind: 'too_large' };
const refused = (status: number): ProviderFailure => ({ kind: 'invalid_request', status });
const broken = (status: number, final = false): ProviderFailure => ({ kind: 'server_error', status, final });

describe('overflow, throttling or neither', () => {
  const nested = error('Provider returned error', {
    metadata: { raw: '{"error":{"message":"maximum context length is 262144 tokens"}}' },
  });
  const rows: readonly [string, number, unknown, ProviderFailure][] = [
    ['numbers', 400, error('maximum context length is 8192, you sent 9001'), window(8_192)],
    ['a code', 400, error('Too long.', { code: 'context_length_exceeded' }), OVERFLOW],
    ['Anthropic', 400, error('prompt is too long: 210000 tokens > 200000 maximum'), window(200_000)],
    ['Gemini', 400, error('The input token count (1200000) exceeds the maximum number of tokens allowed'), OVERFLOW],
    ['llama.cpp', 500, error('the request exceeds the available context size'), OVERFLOW],
    [
      'Anthropic, input and output together',
      400,
      error('input length and `max_tokens` exceed context limit: 190000 + 21333 > 200000, decrease input length'),
      window(200_000),
    ],
    [
      'vLLM, by the model',
      400,
      error('The decoder prompt (length 9000) is longer than the maximum model length of 8192.'),
      window(8_192),
    ],
    ['TGI', 422, error('`inputs` must have less than 4096 tokens. Given: 5000'), OVERFLOW],
    ['TGI, together', 422, error('`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000'), OVERFLOW],
    ['Qwen', 400, error('Range of input length should be [1, 30720]'), OVERFLOW],
    ['GLM', 400, error('Prompt exceeds max length', { code: '1261' }), OVERFLOW],
    ['Moonshot', 400, error('Invalid request: total message token length exceed model limit'), OVERFLOW],
    [
      'GitHub Models',
      413,
      error('Request body too large for this model. Max size: 8000 tokens.', { code: 'tokens_limit_reached' }),
      OVERFLOW,
    ],
    ['nested in a string', 400, nested, window(262_144)],
    [
      'vLLM, no error object',
      400,
      { object: 'error', message: "This model's maximum context length is 4096 tokens" },
      window(4_096),
    ],
    ['a 413 that says so', 413, error('prompt is too long'), OVERFLOW],
    [
      'a request bigger than its limit for a minute',
      429,
      error('Rate limit reached: Limit 30000, Requested 41000', { code: 'rate_limit_exceeded' }),
      window(30_000),
    ],
    [
      'a request that fits its limit',
      429,
      error('Limit 30000, Used 29000, Requested 4100', { code: 'rate_limit_exceeded' }),
      wait(null),
    ],
    ['too many tokens, please wait', 429, error('too many tokens, please wait'), wait(null)],
    ['too many tokens per minute', 429, error('too many tokens per minute'), wait(null)],
    ['413 without words', 413, '', TOO_LARGE],
    ['an image', 400, error('image too large'), TOO_LARGE],
    ['an image over a limit', 400, error('The image exceeds the maximum size of 5 MB'), TOO_LARGE],
    ['an output cap', 400, error('max_tokens must be at most 4096'), refused(400)],
    ['an output cap by its range', 400, error('Range of max_tokens should be [1, 8192]'), refused(400)],
    ['a field that is too long', 400, error('string too long. Expected a maximum length of 1024'), refused(400)],
    // The request that is sent back holds the words of a user.
    ['words in an echoed request', 422, { detail: [{ msg: 'bad type', input: 'prompt is too long' }] }, refused(422)],
  ];
  test.each(rows)('%s', (_name, status, body, expected) => {
    expect(answer(status, body)).toEqual(expected);
  });
});

describe('Retry-After', () => {
  const rows: readonly [Record<string, string>, string, number | null][] = [
    [{ 'retry-after': '5' }, '', 5_000],
    [{ 'retry-after': '0.5' }, '', 500],
    [{ 'retry-after-ms': '1500', 'retry-after': '2' }, '', 1_500],
    [{ 'retry-after': 'Mon, 02 Nov 2026 10:00:30 GMT' }, '', 30_000],
    [{ 'retry-after': 'Mon, 02 Nov 2026 09:00:00 GMT' }, '', null],
    [{ 'retry-after': '-5' }, '', null],
    [{ 'retry-after': 'abc' }, '', null],
    [{}, 'Please try again in 1m30.5s.', 90_500],
    [{}, 'Please retry in 12s', 12_000],
    [{}, 'Slow down.', null],
  ];
  test.each(rows)('%j %s', (headers, message, expected) => {
    expect(answer(429, error(message), headers)).toEqual(wait(expected));
  });

  test('a delay in the details of the error', () => {
    expect(answer(429, error('Slow down.', { details: [{ retryDelay: '12s' }] }))).toEqual(wait(12_000));
  });
});

describe('what follows from a status', () => {
  const rows: readonly [string, number, unknown, Record<string, string>, ProviderFailure][] = [
    ['a monthly limit', 429, error('monthly limit reached'), { 'retry-after': '277000' }, wait(277_000_000, true)],
    ['a quota', 429, error('x', { code: 'insufficient_quota' }), { 'x-should-retry': 'false' }, wait(null, true)],
    ['a quota for a minute', 429, error('quota exceeded: requests per minute'), {}, wait(null)],
    ['no money', 402, error('Insufficient credits'), {}, wait(null, true)],
    ['a vetoed 429', 429, error('Slow down.'), { 'x-should-retry': 'false' }, broken(429, true)],
    ['throttled as 503', 503, error('being throttled'), {}, { kind: 'overloaded', status: 503, afterMs: null }],
    ['503 with a wait', 503, '', { 'retry-after': '7' }, { kind: 'overloaded', status: 503, afterMs: 7_000 }],
    ['529', 529, error('Overloaded'), {}, { kind: 'overloaded', status: 529, afterMs: null }],
    ['500', 500, '<html>', {}, broken(500)],
    ['502', 502, '', {}, broken(502)],
    ['a vetoed 500', 500, '', { 'x-should-retry': 'false' }, broken(500, true)],
    ['409', 409, '', {}, broken(409)],
    ['401', 401, error('Incorrect API key provided'), {}, { kind: 'auth', status: 401 }],
    ['403 about the key', 403, error('Invalid API key'), {}, { kind: 'auth', status: 403 }],
    ['403 about something else', 403, error('Country not supported'), {}, refused(403)],
    [
      'a wrong key as 400',
      400,
      error('API key not valid. Please pass a valid API key.'),
      {},
      { kind: 'auth', status: 400 },
    ],
    ['400', 400, error('bad'), { 'x-should-retry': 'true' }, refused(400)],
    ['404', 404, '', {}, refused(404)],
    ['408', 408, '', {}, refused(408)],
    ['422', 422, '', {}, refused(422)],
  ];
  test.each(rows)('%s', (_name, status, body, headers, expected) => {
    expect(answer(status, body, headers)).toEqual(expected);
  });
});

test.each<[string, unknown, ProviderFailure]>([
  ['overflow', { message: 'input is too long' }, OVERFLOW],
  ['a status as code', { code: 502, message: 'upstream' }, broken(502)],
  [
    'overloaded',
    { type: 'overloaded_error', message: 'Overloaded' },
    { kind: 'overloaded', status: 529, afterMs: null },
  ],
  ['a rate limit', { code: 'rate_limit_exceeded', message: 'try again in 2s' }, wait(2_000)],
  ['a code as text', { code: '429', message: 'slow' }, wait(null)],
  ['a bad request', { type: 'invalid_request_error', message: 'bad' }, refused(400)],
  ['a text', 'something broke', broken(500)],
])('an error in the stream: %s', (_name, value, expected) => {
  expect(classify({ kind: 'frame', error: value }, NOW).failure).toEqual(expected);
});

describe('thrown', () => {
  const withCode = (code: string) =>
    new Error('Connection error.', {
      cause: new TypeError('fetch failed', { cause: Object.assign(new Error('x'), { code }) }),
    });

  test.each<[string, boolean, ProviderFailure]>([
    ['ECONNREFUSED', false, { kind: 'transport', cause: 'connect' }],
    ['ENOTFOUND', false, { kind: 'transport', cause: 'connect' }],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', false, { kind: 'transport', cause: 'connect' }],
    ['ECONNRESET', false, { kind: 'transport', cause: 'reset' }],
    ['UND_ERR_SOCKET', true, { kind: 'transport', cause: 'cut' }],
    ['HPE_INVALID_CHUNK_SIZE', true, { kind: 'transport', cause: 'malformed' }],
    ['UND_ERR_HEADERS_TIMEOUT', false, { kind: 'stalled' }],
    ['UND_ERR_BODY_TIMEOUT', true, { kind: 'stalled' }],
  ])('%s, streaming %s', (code, streaming, expected) => {
    expect(classify({ kind: 'thrown', error: withCode(code), streaming }, NOW).failure).toEqual(expected);
  });

  test('its message is never told: it may quote what the model said', () => {
    const parse = new SyntaxError('Unexpected token in "the secret plan"');
    expect(classify({ kind: 'thrown', error: parse, streaming: true }, NOW).note).toBe('transport: cut');
  });
});

describe('the note', () => {
  const note = (message: string, secrets: string[] = []) =>
    classify({ kind: 'answer', status: 422, headers: new Headers(), body: error(message) }, NOW, secrets).note;

  test.each([
    ['connect ECONNREFUSED 10.0.0.5:5432 password=test-pw', 'connect ECONNREFUSED 10.0.0.5:5432 password=***'],
    ['Incorrect thing sk-abcd****wxyz at https://x', 'Incorrect thing *** at https://x'],
    ['got Bearer abc.def-123 here', 'got Bearer *** here'],
    ['ask pat.example@test.invalid', 'ask ***'],
    ['at https://user:pw@host/v1', 'at https://***@host/v1'],
    ['first line\nsecond line', 'first line'],
    ['the one in use: plain-word-key', 'the one in use: ***'],
  ])('%s', (message, expected) => {
    expect(note(message, ['plain-word-key'])).toBe(`invalid_request 422: ${expected}`);
  });

  test('a key that was named is masked', () => {
    expect(note('Incorrect API key provided: abc123. See docs')).toBe(
      'invalid_request 422: Incorrect API key provided: *** See docs',
    );
  });

  test('at most 200 characters', () => {
    expect(note('word '.repeat(500))).toHaveLength(200);
  });

  test('three failures, three notes', () => {
    const notes = [
      classify({ kind: 'answer', status: 500, headers: new Headers(), body: '' }, NOW).note,
      classify({ kind: 'frame', error: { message: 'broke' } }, NOW).note,
      classify(
        {
          kind: 'thrown',
          error: new Error('x', { cause: Object.assign(new Error(), { code: 'ECONNREFUSED' }) }),
          streaming: false,
        },
        NOW,
      ).note,
    ];
    expect(notes).toEqual([
      'server_error 500',
      'server_error 500: in the stream: broke',
      'transport: connect ECONNREFUSED',
    ]);
  });
});
