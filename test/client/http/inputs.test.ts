import { describe, expect, test } from 'vitest';
import { createApp } from '../../../client/http/app.ts';
import { ProblemSchema } from '../../../client/http/problem.ts';
import { BadPosition, type Runs, SessionClosed } from '../../../client/index.ts';

/** A facade whose one verb answers so, and what it was asked; any other verb is not there. */
function app(verb: keyof Runs, answer: unknown) {
  const asked: unknown[][] = [];
  const give = (...args: unknown[]) => {
    asked.push(args);
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  };
  return { asked, api: createApp({ [verb]: give } as unknown as Runs) };
}

const send = (method: string, body: unknown): RequestInit => ({
  method,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

const BRANCH = { at: 'a'.repeat(64), head: 'b'.repeat(64), effects: 2 };

describe('what goes well', () => {
  test.each<[string, keyof Runs, unknown, string, RequestInit, unknown[], number, unknown]>([
    [
      'a prompt',
      'send',
      { kind: 'accepted', input: 'in_1', session: 'ses_1', isNew: true },
      '/v1/sessions/job_1/inputs',
      send('POST', { text: 'go on', id: 'mine', by: 'pat' }),
      ['default', 'job_1', { text: 'go on', id: 'mine', by: 'pat' }],
      201,
      { id: 'in_1', session: 'ses_1', isNew: true },
    ],
    [
      'a prompt that is known',
      'send',
      { kind: 'accepted', input: 'in_1', session: 'ses_1', isNew: false },
      '/v1/sessions/ses_1/inputs',
      send('POST', { text: 'go on' }),
      ['default', 'ses_1', { text: 'go on', id: undefined, by: 'api' }],
      200,
      { id: 'in_1', session: 'ses_1', isNew: false },
    ],
    [
      'what can’t wait',
      'send',
      { kind: 'accepted', input: 'in_1', session: 'ses_1', isNew: true },
      '/v1/sessions/ses_1/inputs',
      send('POST', { text: 'stop that', mode: 'send_now' }),
      ['default', 'ses_1', { text: 'stop that', mode: 'send_now', by: 'api' }],
      201,
      { id: 'in_1', session: 'ses_1', isNew: true },
    ],
    [
      'the queue',
      'inputs',
      { inputs: [], next: '7' },
      '/v1/sessions/ses_1/inputs?waiting=true&cursor=3&limit=2',
      {},
      ['default', 'ses_1', { cursor: '3', limit: 2, waiting: true }],
      200,
      { inputs: [], next: '7' },
    ],
    [
      'an edit',
      'editInput',
      { kind: 'changed' },
      '/v1/inputs/in_1',
      send('PUT', { text: 'other', by: 'pat' }),
      ['default', 'in_1', { text: 'other', by: 'pat' }],
      200,
      { changed: true },
    ],
    [
      'a withdrawal',
      'withdrawInput',
      { kind: 'before', by: 'ann' },
      '/v1/inputs/in_1/withdraw',
      send('POST', { why: 'no need' }),
      ['default', 'in_1', { by: 'api', why: 'no need' }],
      200,
      { changed: false },
    ],
    [
      'a lock',
      'lockInput',
      { kind: 'locked_now', until: '2026-01-01T00:00:00.000Z' },
      '/v1/inputs/in_1/lock',
      send('PUT', { by: 'pat' }),
      ['default', 'in_1', { by: 'pat' }],
      200,
      { until: '2026-01-01T00:00:00.000Z' },
    ],
    [
      'letting go',
      'unlockInput',
      { kind: 'changed' },
      '/v1/inputs/in_1/unlock',
      send('POST', { by: 'pat' }),
      ['default', 'in_1', { by: 'pat' }],
      200,
      { changed: true },
    ],
    [
      'a fork',
      'fork',
      { kind: 'forked', session: 'ses_2', isNew: true, ...BRANCH },
      '/v1/sessions/ses_1/fork',
      send('POST', { at: 'aaaaaaaa', title: 't', id: 'f' }),
      ['default', 'ses_1', { at: 'aaaaaaaa', title: 't', id: 'f', by: 'api' }],
      201,
      { session: 'ses_2', isNew: true, ...BRANCH },
    ],
    [
      'a rewind',
      'rewind',
      { kind: 'rewound', ...BRANCH },
      '/v1/sessions/ses_1/rewind',
      send('POST', { to: 'start', by: 'pat', why: 'w' }),
      ['default', 'ses_1', { to: 'start', by: 'pat', why: 'w' }],
      200,
      BRANCH,
    ],
    [
      'a title',
      'rename',
      true,
      '/v1/sessions/ses_1/title',
      send('PUT', { title: 'T-2' }),
      ['default', 'ses_1', { title: 'T-2', by: 'api' }],
      200,
      { title: 'T-2' },
    ],
    [
      'the archive',
      'archive',
      { kind: 'done', changed: true },
      '/v1/sessions/ses_1/archived',
      send('PUT', { archived: true }),
      ['default', 'ses_1', { archived: true, by: 'api', why: undefined }],
      200,
      { archived: true, changed: true },
    ],
    [
      'sessions',
      'sessions',
      { sessions: [], next: null },
      '/v1/sessions?state=archived&limit=5',
      {},
      ['default', { state: 'archived', limit: 5 }],
      200,
      { sessions: [], next: null },
    ],
    [
      'a transcript',
      'messages',
      { head: 'h', messages: [], next: null },
      '/v1/sessions/ses_1/messages?from=aaaaaaaa',
      {},
      ['default', 'ses_1', { from: 'aaaaaaaa' }],
      200,
      { head: 'h', messages: [], next: null },
    ],
  ])('%s', async (_name, verb, answer, path, init, asks, status, body) => {
    const { api, asked } = app(verb, answer);
    const response = await api.request(path, init);
    expect([response.status, await response.json()]).toEqual([status, body]);
    expect(asked).toEqual([asks]);
  });
});

const TEXT = send('POST', { text: 'x' });
const EDIT = send('PUT', { text: 'x' });
const taken = (status: string) => ({ kind: 'taken', status, turn: 'ses_1/2', by: 'ann' });

describe('what goes wrong is a problem document', () => {
  test.each<[string, keyof Runs, unknown, string, RequestInit, number, string, RegExp]>([
    ['no such session', 'send', null, '/v1/sessions/s/inputs', TEXT, 404, 'unknown-session', /id/],
    ['another text', 'send', { kind: 'conflict' }, '/v1/sessions/s/inputs', TEXT, 409, 'input-conflict', /another id/],
    ['archived', 'send', { kind: 'archived' }, '/v1/sessions/s/inputs', TEXT, 409, 'session-archived', /archive/],
    ['full', 'send', { kind: 'full', waiting: 1000 }, '/v1/sessions/s/inputs', TEXT, 429, 'queue-full', /1000 inputs/],
    ['no text', 'send', null, '/v1/sessions/s/inputs', send('POST', { text: ' ' }), 422, 'bad-body', /no text/],
    ['a cursor', 'inputs', new BadPosition('x'), '/v1/sessions/s/inputs?cursor=x', {}, 400, 'bad-position', /x/],
    ['no such input', 'editInput', null, '/v1/inputs/i', EDIT, 404, 'unknown-input', /id/],
    ['heard', 'editInput', taken('consumed'), '/v1/inputs/i', EDIT, 409, 'input-taken', /Turn ses_1\/2 has heard it/],
    ['bound', 'editInput', taken('forwarded'), '/v1/inputs/i', EDIT, 409, 'input-taken', /Turn ses_1\/2 has it/],
    ['gone', 'editInput', taken('withdrawn'), '/v1/inputs/i', EDIT, 409, 'input-taken', /withdrawn by ann/],
    ['dropped', 'editInput', taken('dropped_by_cancel'), '/v1/inputs/i', EDIT, 409, 'input-taken', /cancelled by ann/],
    ['kept back', 'editInput', taken('hook_blocked'), '/v1/inputs/i', EDIT, 409, 'input-taken', /hook/],
    ['had before', 'editInput', taken('left_over'), '/v1/inputs/i', EDIT, 409, 'input-taken', /withdraw it/],
    [
      'not written',
      'editInput',
      { kind: 'not_written', source: 'call_back' },
      '/v1/inputs/i',
      EDIT,
      409,
      'input-taken',
      /call back/,
    ],
    [
      'somebody else’s',
      'lockInput',
      { kind: 'locked', by: 'ann', until: 'noon' },
      '/v1/inputs/i/lock',
      send('PUT', {}),
      409,
      'input-locked',
      /ann edits it until noon/,
    ],
    [
      'a running turn',
      'rewind',
      { kind: 'busy', turn: 'ses_1/2' },
      '/v1/sessions/s/rewind',
      send('POST', { to: 'start' }),
      409,
      'session-busy',
      /ses_1\/2 is open/,
    ],
    [
      'no such message',
      'rewind',
      { kind: 'unknown_message' },
      '/v1/sessions/s/rewind',
      send('POST', { to: 'x' }),
      422,
      'unknown-message',
      /8 or more digits/,
    ],
    [
      'another fork',
      'fork',
      { kind: 'conflict', session: 'ses_2' },
      '/v1/sessions/s/fork',
      send('POST', {}),
      409,
      'input-conflict',
      /ses_2/,
    ],
    [
      'inputs that wait',
      'archive',
      { kind: 'waiting', inputs: 2 },
      '/v1/sessions/s/archived',
      send('PUT', { archived: true }),
      409,
      'session-busy',
      /2 inputs wait/,
    ],
    [
      'no such title',
      'rename',
      false,
      '/v1/sessions/s/title',
      send('PUT', { title: '' }),
      404,
      'unknown-session',
      /id/,
    ],
    [
      'an event for the archive',
      'report',
      new SessionClosed('archived'),
      '/v1/sessions/s/events/e',
      send('POST', {}),
      409,
      'session-archived',
      /unarchive/,
    ],
    [
      'an event for a sub-agent that has ended',
      'report',
      new SessionClosed('agent_ended'),
      '/v1/sessions/s%2Fagent%2F1/events/e',
      send('POST', {}),
      409,
      'agent-ended',
      /the session that started it/,
    ],
    [
      'an input for a sub-agent that has ended',
      'send',
      { kind: 'agent_ended' },
      '/v1/sessions/s%2Fagent%2F1/inputs',
      send('POST', { text: 'x' }),
      409,
      'agent-ended',
      /hears nothing more/,
    ],
    [
      'its way out of the archive',
      'archive',
      { kind: 'agent_ended' },
      '/v1/sessions/s%2Fagent%2F1/archived',
      send('PUT', { archived: false }),
      409,
      'agent-ended',
      /hears nothing more/,
    ],
    ['another method', 'send', null, '/v1/inputs/i', { method: 'DELETE' }, 405, 'method-not-allowed', /PUT/],
  ])('%s', async (_name, verb, answer, path, init, status, type, detail) => {
    const response = await app(verb, answer).api.request(path, init);
    const text = await response.text();
    expect(response.status, text).toBe(status);
    const problem = ProblemSchema.parse(JSON.parse(text));
    expect(problem.type).toBe(`urn:pawl:problem:${type}`);
    expect(problem.detail).toMatch(detail);
    expect(response.headers.get('retry-after')).toBe(status === 429 ? '30' : null);
  });
});
