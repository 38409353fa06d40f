import { describe, expect, test } from 'vitest';
import { createApp } from '../../../client/http/app.ts';
import type { CreatedGoal, OrderAnswer, Runs } from '../../../client/index.ts';

const HEADERS = { 'content-type': 'application/json', 'idempotency-key': 'k' };
const post = (body: unknown, method = 'POST'): RequestInit => ({
  method,
  headers: HEADERS,
  body: JSON.stringify(body),
});
const appWith = (part: Partial<Runs>) => createApp(part as Runs);

async function answer(part: Partial<Runs>, path: string, request?: RequestInit) {
  const response = await appWith(part).request(path, request);
  const body = (await response.json()) as { type?: string };
  return [response.status, body.type?.replace('urn:pawl:problem:', '') ?? body];
}

const GOAL = { goal: 'goal_1', session: 'ses_1' };

describe('POST /v1/goals', () => {
  const created: readonly [CreatedGoal, unknown][] = [
    [{ kind: 'accepted', ...GOAL, isNew: true }, [201, { id: 'goal_1', session: 'ses_1', isNew: true }]],
    [{ kind: 'accepted', ...GOAL, isNew: false }, [200, { id: 'goal_1', session: 'ses_1', isNew: false }]],
    [{ kind: 'conflict', goal: 'goal_1' }, [409, 'key-conflict']],
    [{ kind: 'another_is_open' }, [409, 'goal-open']],
    [{ kind: 'unknown_session' }, [404, 'unknown-session']],
    [{ kind: 'unknown_agent', asked: 'x', known: ['y'] }, [422, 'unknown-agent']],
    [{ kind: 'refused', why: 'No price.' }, [422, 'goal-refused']],
  ];
  test.each(created)('%j', async (answered, expected) => {
    const createGoal = () => Promise.resolve(answered);
    expect(await answer({ createGoal }, '/v1/goals', post({ objective: 'do it' }))).toEqual(expected);
  });

  test.each([
    { objective: ' ' },
    { objective: 'x', checks: [''] },
    { objective: 'x', checks: [{ tool: 't', arguments: 'a' }] },
    { objective: 'x', checks: [{ tool: 't', command: 'c' }] },
    { objective: 'x', sceptics: 6 },
    { objective: 'x', budget: { turns: 0 } },
    { objective: 'x', schedule: { everySeconds: 0 } },
    { objective: 'x', schedule: { cron: '* * * * *', everySeconds: 1 } },
    { objective: 'x', judge: { model: 'alone' } },
  ])('refuses %j before anything is asked', async (body) => {
    expect(await answer({}, '/v1/goals', post(body))).toEqual([422, 'bad-body']);
  });
});

describe('commands', () => {
  const answers: readonly [OrderAnswer | null, unknown][] = [
    [{ kind: 'done', status: 'paused(user)' }, [200, { status: 'paused(user)' }]],
    [{ kind: 'final', status: 'complete' }, [409, 'goal-final']],
    [{ kind: 'conflict' }, [409, 'key-conflict']],
    [{ kind: 'refused', why: 'No price.' }, [422, 'goal-refused']],
    [null, [404, 'unknown-goal']],
  ];
  test.each(answers)('%j', async (answered, expected) => {
    const orderGoal = () => Promise.resolve(answered);
    expect(await answer({ orderGoal }, '/v1/goals/goal_1/pause', post({ by: 'a' }))).toEqual(expected);
  });

  test('an edit changes something', async () => {
    expect(await answer({}, '/v1/goals/goal_1', post({ by: 'a' }, 'PATCH'))).toEqual([422, 'bad-body']);
  });

  test('who asks and why come with it; a round of a recurring goal has a slash in its name', async () => {
    const asked: unknown[] = [];
    const orderGoal: Runs['orderGoal'] = (...all) => {
      asked.push(all);
      return Promise.resolve({ kind: 'done', status: 'cancelled' });
    };
    const id = encodeURIComponent('goal_1/2027-01-01T00:00:00Z');
    await answer({ orderGoal }, `/v1/goals/${id}/cancel`, post({ id: 'c', why: 'enough' }));
    expect(asked).toEqual([
      ['default', 'goal_1/2027-01-01T00:00:00Z', { kind: 'cancel', id: 'c', why: 'enough', by: 'api' }],
    ]);
  });
});

test('a wake is answered with what is known of it', async () => {
  const woken = { id: 'wk_1', isNew: true, outcome: null, why: null };
  const wakeGoal = () => Promise.resolve(woken);
  expect(await answer({ wakeGoal }, '/v1/goals/goal_1/wake', post({ id: 'ci-1' }))).toEqual([200, woken]);
  const nobody = { wakeGoal: () => Promise.resolve(null) };
  expect(await answer(nobody, '/v1/goals/goal_1/wake', post({}))).toEqual([404, 'unknown-goal']);
  const recurring = { wakeGoal: () => Promise.resolve('recurring' as const) };
  expect(await answer(recurring, '/v1/goals/goal_1/wake', post({}))).toEqual([422, 'goal-refused']);
});
