import { C, callTools, chunks, D, F, hold, paced, type Reply, say, status, T, U, X } from '../../testing/index.ts';
import type { Patience } from '../../workflows/core/policy.ts';

/** Everything as by default, in milliseconds instead of minutes. */
export const SHORT = {
  transportDelaysMs: [20],
  transportAttempts: 3,
  transientDelaysMs: [50, 60],
  rateLimitWaitMs: 40,
  rateLimitWaitMaxMs: 500,
  parkMaxMs: 2_000,
  authDelaysMs: [30, 70],
  resumeAfterMs: 90_000,
} satisfies Partial<Patience>;
export const STALL_MS = 800;

/** A rest, ms: as it is, or spread by the dice. */
export type Rest = number | 'dice';

export interface Shown {
  readonly agent?: 'short' | 'stalls' | 'capped';
  readonly replies: readonly Reply[];
  /** Reason and detail, who decided it, and the signal. */
  readonly end: readonly [end: string, decidedBy: string, signal: object];
  readonly rests: readonly Rest[];
  /** From the end on, ms. */
  readonly resumeMs?: number;
  readonly transcript?: readonly string[];
}

const message = (text: string) => ({ error: { message: text } });
const wait = (ms: number) => ({ 'retry-after-ms': String(ms) });
const NEVER = { 'x-should-retry': 'false' };
const OK = ['COMPLETED/final_answer', 'model', { name: 'model_stop' }] as const;
const away = (cause: string, used: number) =>
  ['ERROR/provider_unavailable', 'runtime', { name: 'retries_spent', cause, used }] as const;
const invalid = (code: number) =>
  ['ERROR/invalid_request', 'runtime', { name: 'provider_answer', cause: 'invalid_request', status: code }] as const;
const done = say('Done.');

/** Three attempts, begun anew twice. */
const ALL_SPENT: readonly Rest[] = ['dice', 'dice', 50, 'dice', 'dice', 60, 'dice', 'dice'];

const silent = paced(say('One two'), { hold: hold(), holdAt: 2 });
const pinging = paced(silent, { commentsEveryMs: 20 });
const cutCall = chunks([T(0, 'a1', 'write_file', '{"path":"a.txt","content":"x'), X]);
const list = { name: 'list_files', arguments: {} };

/** What a provider does, and exactly what becomes of it. */
export const TROUBLES: Readonly<Record<string, Shown>> = {
  '500 for ever': {
    replies: [status(500, message('broken'))],
    end: away('server_error', 3),
    rests: ALL_SPENT,
    resumeMs: 90_000,
    transcript: ['user'],
  },
  '502 until the second outage': {
    replies: [...Array<Reply>(6).fill(status(502)), done],
    end: OK,
    rests: ALL_SPENT.slice(0, 6),
  },
  '529 for ever, without a fallback': {
    replies: [status(529, message('overloaded'))],
    end: away('overloaded', 3),
    rests: ALL_SPENT,
    resumeMs: 90_000,
  },
  '529 with Retry-After': { replies: [status(529, '', wait(300)), done], end: OK, rests: [300] },
  '503 with Retry-After': { replies: [status(503, '', { 'retry-after': '1' }), done], end: OK, rests: [1_000] },
  // Longer than what is waited for in a step: it spends none of the three attempts.
  '503 with a long wait parks, and goes on': {
    replies: [...Array<Reply>(3).fill(status(503, '', wait(600))), done],
    end: OK,
    rests: [600, 600, 600],
  },
  '503 that parks for too long in all': {
    replies: [status(503, '', wait(1_200))],
    end: away('overloaded', 1),
    rests: [1_200],
    resumeMs: 90_000,
  },
  'a third 429': {
    replies: [status(429, message('slow down'))],
    end: away('rate_limited', 3),
    rests: [40, 40],
    resumeMs: 90_000,
  },
  '429 with Retry-After': { replies: [status(429, '', wait(220)), done], end: OK, rests: [220] },
  '429 without': { replies: [status(429), done], end: OK, rests: [40] },
  // Longer than what is waited for in a step: three of them are more than its two attempts.
  '429 with a long wait parks, and goes on': {
    replies: [...Array<Reply>(3).fill(status(429, '', wait(600))), done],
    end: OK,
    rests: [600, 600, 600],
  },
  'parked for too long in all': {
    replies: [status(429, message('You exceeded your quota'), wait(800))],
    end: away('rate_limited', 1),
    rests: [800, 800],
    resumeMs: 90_000,
  },
  'a wait of a day': {
    replies: [status(429, '', { 'retry-after': '86400' })],
    end: away('rate_limited', 1),
    rests: [],
    resumeMs: 86_400_000,
  },
  '401 for ever': {
    replies: [status(401, message('bad key'))],
    end: ['ERROR/auth', 'runtime', { name: 'provider_answer', cause: 'auth', status: 401 }],
    rests: [30, 70],
  },
  '401, then the key is good': { replies: [status(401), done], end: OK, rests: [30] },
  ...Object.fromEntries(
    [400, 403, 404, 408, 422].map((code) => [
      `${code} is not asked again`,
      { replies: [status(code, message('no'))], end: invalid(code), rests: [] },
    ]),
  ),
  ...Object.fromEntries(
    [429, 500, 503].map((code) => [
      `${code} with x-should-retry: false`,
      { replies: [status(code, '', NEVER)], end: away('server_error', 1), rests: [], resumeMs: 90_000 },
    ]),
  ),
  'silence for ever': { agent: 'stalls', replies: [silent], end: away('stalled', 3), rests: ['dice', 'dice'] },
  'silence, then an answer': {
    agent: 'stalls',
    replies: [silent, done],
    end: OK,
    rests: ['dice'],
    transcript: ['user', 'assistant: Done.'],
  },
  'comments for ever': { agent: 'stalls', replies: [pinging], end: away('stalled', 3), rests: ['dice', 'dice'] },
  'comments, then an answer': { agent: 'stalls', replies: [pinging, done], end: OK, rests: ['dice'] },
  'cut in a call, for ever': {
    replies: [cutCall],
    end: away('transport', 3),
    rests: ALL_SPENT,
    transcript: ['user'],
  },
  'an error in the stream': {
    replies: [chunks([C({ content: 'Half' }), { error: { message: 'boom', code: 500 } }]), done],
    end: OK,
    rests: ['dice'],
    transcript: ['user', 'assistant: Done.'],
  },
  'cut by its length, with calls: the last counts as cut': {
    agent: 'capped',
    replies: [callTools([list, list], { finish: 'length' }), done],
    end: OK,
    rests: [],
    transcript: ['user', 'assistant: ', 'result: ok', 'result: error', 'assistant: Done.'],
  },
  'cut by its length, with calls, a sixth time': {
    agent: 'capped',
    replies: [callTools([list, list], { finish: 'length' })],
    end: ['ERROR/model', 'runtime', { name: 'retries_spent', cause: 'cut_calls', used: 6 }],
    rests: [],
  },
  'cut by its length, without calls, a fourth time': {
    agent: 'capped',
    replies: [say('More. ', { finish: 'length' })],
    end: ['MAX_TOKENS/output_limit', 'runtime', { name: 'limit', limit: 'output_tokens', allowed: 100, used: 100 }],
    rests: [],
  },
  'a refusal part': {
    replies: [chunks([C({ refusal: 'I will not.' }), F('stop'), U(100, 10), D])],
    end: ['COMPLETED/refused', 'model', { name: 'model_refusal' }],
    rests: [],
  },
  filtered: {
    replies: [say('', { finish: 'content_filter' })],
    end: ['COMPLETED/refused', 'model', { name: 'model_refusal' }],
    rests: [],
  },
  'one byte after the other': {
    replies: [
      paced(callTools([list], { text: 'Ein Blick — 🎫' }), { byteByByte: true }),
      paced(say('Fertig: ü 🎫'), { byteByByte: true }),
    ],
    end: OK,
    rests: [],
    transcript: ['user', 'assistant: Ein Blick — 🎫', 'result: ok', 'assistant: Fertig: ü 🎫'],
  },
};
