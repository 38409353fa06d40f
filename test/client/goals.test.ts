import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createApp } from '../../client/http/app.ts';
import { BadId, type Runs } from '../../client/index.ts';
import { seedJob, storeOnly } from './seed.ts';

let at: Awaited<ReturnType<typeof storeOnly>>;
beforeAll(async () => {
  at = await storeOnly();
});
afterAll(() => at.close());

const by = 'pat';

/** What a caller may give an id of its own. */
const NAMED: readonly [string, (runs: Runs, of: { session: string; goal: string }, id: string) => Promise<unknown>][] =
  [
    ['a job', (runs, _, key) => runs.submit({ tenant: 'default', key, text: 'x' })],
    ['a goal', (runs, _, key) => runs.createGoal({ tenant: 'default', key, objective: 'x', by })],
    ['pause', (runs, { goal }, id) => runs.orderGoal('default', goal, { id, kind: 'pause', by })],
    ['resume', (runs, { goal }, id) => runs.orderGoal('default', goal, { id, kind: 'resume', by })],
    ['cancel', (runs, { goal }, id) => runs.orderGoal('default', goal, { id, kind: 'cancel', by })],
    ['edit', (runs, { goal }, id) => runs.orderGoal('default', goal, { id, kind: 'edit', objective: 'y', by })],
    ['wake', (runs, { goal }, id) => runs.wakeGoal('default', goal, { id, by })],
    ['an input', (runs, { session }, id) => runs.send('default', session, { id, text: 'x', by })],
    ['a fork', (runs, { session }, id) => runs.fork('default', session, { id, by })],
    ['an event', (runs, { session }, id) => runs.report('default', session, { id, name: 'ci', by })],
    ['cancelling a job', (runs, { session }, id) => runs.cancel('default', session, { id, by })],
  ];

// A history keeps what jsonb refuses: the goal's workflow failed over it when it told the store.
describe('an id that the store could not keep', () => {
  test.each(NAMED)('is refused for %s', async (_, ask) => {
    const of = { ...(await seedJob(at.database)), goal: 'goal_none' };
    for (const id of ['\0', 'a\ud800', '\udc00b', '', 'x'.repeat(501)]) {
      await expect(ask(at.runs, of, id)).rejects.toBeInstanceOf(BadId);
    }
  });

  test.each([
    ['POST', '/v1/goals/goal_1/pause', {}],
    ['POST', '/v1/goals/goal_1/resume', {}],
    ['POST', '/v1/goals/goal_1/cancel', {}],
    ['PATCH', '/v1/goals/goal_1', { objective: 'y' }],
    ['POST', '/v1/goals/goal_1/wake', {}],
    ['POST', '/v1/sessions/ses_1/inputs', { text: 'x' }],
    ['POST', '/v1/sessions/ses_1/fork', {}],
    ['POST', '/v1/sessions/ses_1/events/ci', {}],
    ['POST', '/v1/jobs/job_1/cancel', {}],
  ])('is a problem with the body: %s %s', async (method, path, body) => {
    const headers = { 'content-type': 'application/json' };
    for (const id of ['\0', 'a\ud800']) {
      const request = { method, headers, body: JSON.stringify({ ...body, id }) };
      const response = await createApp({} as Runs).request(path, request);
      expect([response.status, await response.json()]).toEqual([
        422,
        expect.objectContaining({
          type: 'urn:pawl:problem:bad-body',
          detail: 'id: an id of your own has no NUL and no unpaired surrogate in it: take another one.',
        }),
      ]);
    }
  });

  test('of the facade’s own making is the same problem', async () => {
    const runs = { wakeGoal: () => Promise.reject(new BadId('No.')) } as unknown as Runs;
    const request = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' };
    const response = await createApp(runs).request('/v1/goals/goal_1/wake', request);
    expect([response.status, await response.json()]).toEqual([422, expect.objectContaining({ detail: 'No.' })]);
  });
});
