import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { goal, goalTemplate, input } from '../../activities/store/schema.ts';
import { createApp } from '../../client/http/app.ts';
import { createGoal } from '../../client/create-goal.ts';
import type { ClientEngine } from '../../client/engine.ts';
import { type GoalOrder, orderGoal } from '../../client/goal-orders.ts';
import { BadId, EngineAway, type NewGoalRequest, type Runs } from '../../client/index.ts';
import { changeTemplate } from '../../client/recurring.ts';
import { CATALOGUE, seedJob, storeOnly } from './seed.ts';

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

/** The Schedules of an engine that may be away. */
class Schedules {
  readonly made = new Map<string, 'fires' | 'paused'>();
  isAway = false;
  whenMade: (id: string) => Promise<unknown> = () => Promise.resolve();

  readonly engine = {
    lookGoal: () => this.#answer(null),
    commandGoal: () => this.#answer('active'),
    schedule: async ({ id }: { id: string }, { paused }: { paused?: boolean }) => {
      await this.#answer(null);
      this.made.set(id, paused ? 'paused' : 'fires');
      await this.whenMade(id);
    },
    changeSchedule: async (id: string, change: string) => {
      await this.#answer(null);
      const isThere = this.made.has(id);
      if (change === 'cancel') this.made.delete(id);
      else if (isThere) this.made.set(id, change === 'pause' ? 'paused' : 'fires');
      return isThere;
    },
  } as unknown as ClientEngine;

  #answer<T>(answer: T): Promise<T> {
    return this.isAway ? Promise.reject(new EngineAway()) : Promise.resolve(answer);
  }
}

function nightly() {
  const schedules = new Schedules();
  const deps = { db: at.database.db, engine: schedules.engine, catalogue: CATALOGUE };
  const request: NewGoalRequest = {
    tenant: 'default',
    key: crypto.randomUUID(),
    objective: 'each night',
    schedule: { cron: '0 3 * * *' },
    by,
  };
  const create = async (change: Partial<NewGoalRequest> = {}) => await createGoal(deps, { ...request, ...change });
  const order = (id: string, given: Omit<GoalOrder, 'by'>) =>
    orderGoal(deps, { tenant: 'default', goal: id }, { by, ...given });
  const begin = async (change: Partial<NewGoalRequest> = {}) => {
    const created = await create(change);
    if (created.kind !== 'accepted') throw new Error(created.kind);
    return created.goal;
  };
  return { schedules, create, begin, order };
}

describe('a recurring goal that is cancelled while the engine is away', () => {
  test.each(['c', 'another'])('fires no more once the cancel is repeated as %s', async (repeat) => {
    const { schedules, begin, order } = nightly();
    const id = await begin();
    schedules.isAway = true;
    await expect(order(id, { kind: 'cancel', id: 'c' })).rejects.toBeInstanceOf(EngineAway);
    schedules.isAway = false;
    expect(schedules.made.get(id)).toBe('fires');
    const answer = await order(id, { kind: 'cancel', id: repeat });
    expect(answer).toEqual({ kind: repeat === 'c' ? 'done' : 'final', status: 'cancelled' });
    expect(schedules.made.size).toBe(0);
    expect(await order(id, { kind: 'resume' })).toEqual({ kind: 'final', status: 'cancelled' });
  });

  test('fires no more where its creation is repeated', async () => {
    const { schedules, begin, create, order } = nightly();
    const id = await begin();
    expect(await order(id, { kind: 'cancel' })).toEqual({ kind: 'done', status: 'cancelled' });
    expect(await create()).toEqual({ kind: 'accepted', goal: id, session: null, isNew: false });
    expect(schedules.made.size).toBe(0);
  });

  test('fires no more where it is cancelled while it is being created', async () => {
    const { schedules, create } = nightly();
    schedules.whenMade = (id) =>
      changeTemplate(at.database.db, id, { goal: id, id: 'c', kind: 'cancel', by, why: null });
    await create();
    expect(schedules.made.size).toBe(0);
  });
});

test('a goal that is over is not woken by a Schedule again where its creation is repeated', async () => {
  const { schedules, begin } = nightly();
  const { session } = await seedJob(at.database);
  const id = await begin({ session });
  expect(schedules.made.get(id)).toBe('fires');
  schedules.made.clear();
  await at.database.db.update(goal).set({ isFinal: true }).where(eq(goal.id, id));
  expect(await begin({ session })).toBe(id);
  expect(schedules.made.size).toBe(0);
});

test('a resume of a goal has its Schedule go on, also by a repeat', async () => {
  const { schedules, begin, order } = nightly();
  const { session } = await seedJob(at.database);
  const id = await begin({ session, schedule: { everySeconds: 60, paused: true } });
  const resume = { kind: 'resume', id: 'r' } as const;
  expect(await order(id, resume)).toEqual({ kind: 'done', status: 'active' });
  schedules.made.set(id, 'paused');
  expect(await order(id, resume)).toEqual({ kind: 'done', status: 'active' });
  expect(schedules.made.get(id)).toBe('fires');
});

describe('the same key with and without a schedule', () => {
  test.each<[string, Partial<NewGoalRequest>, Partial<NewGoalRequest>]>([
    ['first with', {}, { schedule: undefined }],
    ['first without', { schedule: undefined }, {}],
  ])('is a conflict: %s', async (_, first, second) => {
    const { schedules, begin, create } = nightly();
    const id = await begin(first);
    const before = new Map(schedules.made);
    expect(await create(second)).toEqual({ kind: 'conflict', goal: id });
    expect(schedules.made).toEqual(before);
  });

  test('at once is one goal, and conflicts', async () => {
    const { create } = nightly();
    const answers = await Promise.all([
      create(),
      create({ schedule: undefined }),
      create(),
      create({ objective: 'x' }),
    ]);
    const accepted = answers.filter(({ kind }) => kind === 'accepted');
    const [one] = accepted;
    if (one?.kind !== 'accepted') throw new Error('none');
    const { db } = at.database;
    const rows = await Promise.all([
      db.$count(goal, eq(goal.id, one.goal)),
      db.$count(goalTemplate, eq(goalTemplate.id, one.goal)),
    ]);
    expect(rows).toEqual(one.session === null ? [0, 1] : [1, 0]);
    expect(answers.filter(({ kind }) => kind === 'conflict').length).toBe(4 - accepted.length);
  });
});

describe('a session with an open goal', () => {
  const archive = (session: string, archived = true) => at.runs.archive('default', session, { archived, by });

  test('is not archived before the goal is final; an archived one takes no goal', async () => {
    const { begin } = nightly();
    const { session, input: prompt } = await seedJob(at.database);
    const { db } = at.database;
    await db.update(input).set({ status: 'withdrawn' }).where(eq(input.id, prompt));
    const id = await begin({ session, schedule: undefined });
    expect(await archive(session)).toEqual({ kind: 'goal_open', goal: id });
    await db.update(goal).set({ isFinal: true }).where(eq(goal.id, id));
    expect(await archive(session)).toEqual({ kind: 'done', changed: true });
    const another = nightly();
    await expect(another.create({ session })).rejects.toThrow('The session is archived and takes nothing');
    expect(await archive(session, false)).toEqual({ kind: 'done', changed: true });
    expect(await another.create({ session })).toMatchObject({ kind: 'accepted', isNew: true });
  });

  test('is a conflict over HTTP that names the goal and what to do', async () => {
    const runs = { archive: () => Promise.resolve({ kind: 'goal_open', goal: 'goal_1' }) } as unknown as Runs;
    const body = JSON.stringify({ archived: true });
    const request = { method: 'PUT', headers: { 'content-type': 'application/json' }, body };
    const response = await createApp(runs).request('/v1/sessions/ses_1/archived', request);
    expect([response.status, await response.json()]).toEqual([
      409,
      expect.objectContaining({
        type: 'urn:pawl:problem:goal-open',
        detail: 'Goal goal_1 works in it and is not final: cancel the goal first.',
      }),
    ]);
  });
});

describe('text that the store could not keep', () => {
  test('is kept as near as it can be, for a recurring goal too', async () => {
    const { begin, order } = nightly();
    const checks = ['echo \0', { tool: 'look', arguments: { 'a\ud800': '\0' } }];
    const id = await begin({ objective: 'each\0 night', checks, by: 'p\ud800' });
    const shown = await at.runs.recurring('default', id);
    expect(shown).toMatchObject({
      objective: 'each\ufffd night',
      checks: [{ command: 'echo \ufffd' }, { tool: 'look', arguments: { 'a\ufffd': '\ufffd' } }],
    });
    const edited = { kind: 'edit', objective: 'x\0', checks: ['true \ud800'] } as const;
    expect(await order(id, edited)).toEqual({ kind: 'done', status: 'active' });
    expect(await at.runs.recurring('default', id)).toMatchObject({
      objective: 'x\ufffd',
      checks: [{ command: 'true \ufffd' }],
    });
  });

  test.each(['\0', 'goal_\0', 'goal_\ud800'])('names nothing: %j', async (id) => {
    const verbs: readonly Promise<unknown>[] = [
      at.runs.goal('default', id),
      at.runs.recurring('default', id),
      at.runs.orderGoal('default', id, { kind: 'pause', by }),
      at.runs.wakeGoal('default', id, { by }),
      at.runs.why('default', id),
      at.runs.answer('default', id, { answer: 'approved', by }),
      at.runs.plan('default', id, { plan: true, by }),
      at.runs.report('default', id, { name: 'ci', by }),
    ];
    expect(await Promise.all(verbs)).toEqual(verbs.map(() => null));
  });

  test('may stand in an event', async () => {
    const { session } = await seedJob(at.database);
    const event = { id: 'e', name: 'c\0i', text: 'gr\ud800een', by: 'p\0at' };
    const told = { id: 'e', waits: 0, goal: null };
    expect(await at.runs.report('default', session, event)).toEqual({ ...told, isNew: true });
    expect(await at.runs.report('default', session, event)).toEqual({ ...told, isNew: false });
  });
});
