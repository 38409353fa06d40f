import { expect, test } from 'vitest';
import { createApp } from '../../../client/http/app.ts';
import type { Runs } from '../../../client/index.ts';

type Wish = Parameters<Runs['plan']>;

function app(answer: Awaited<ReturnType<Runs['plan']>>) {
  const wishes: Wish[] = [];
  const plan: Runs['plan'] = (...wish) => {
    wishes.push(wish);
    return Promise.resolve(answer);
  };
  return { wishes, api: createApp({ plan } as unknown as Runs) };
}

const put = (body: unknown): RequestInit => ({
  method: 'PUT',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

test.each([
  [
    { plan: true, by: 'pat' },
    { plan: true, by: 'pat' },
  ],
  [{ plan: false }, { plan: false, by: 'api' }],
])('PUT %j sets the plan flag of a session, and says who', async (body, wish) => {
  const { api, wishes } = app({ plan: body.plan, changed: true });
  const answer = await api.request('/v1/sessions/ses_1/plan', put(body));
  expect([answer.status, await answer.json()]).toEqual([200, { plan: body.plan, changed: true }]);
  expect(wishes).toEqual([['default', 'ses_1', wish]]);
});

test.each<[string, RequestInit, number, string]>([
  ['an unknown session', put({ plan: true }), 404, 'unknown-session'],
  ['a body without the flag', put({}), 422, 'bad-body'],
  ['a flag that is none', put({ plan: 'on' }), 422, 'bad-body'],
  ['another method', { ...put({ plan: true }), method: 'POST' }, 405, 'method-not-allowed'],
])('%s is a problem document', async (_, request, status, type) => {
  const answer = await app(null).api.request('/v1/sessions/ses_none/plan', request);
  expect(answer.status).toBe(status);
  expect(await answer.json()).toMatchObject({ type: `urn:pawl:problem:${type}` });
});
