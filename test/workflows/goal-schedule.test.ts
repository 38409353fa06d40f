import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { ScheduleNotFoundError } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRuns, type Runs } from '../../client/index.ts';
import { say } from '../../testing/index.ts';
import { goalIs, roleOf, verdict, vote } from '../support/goals.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';
import { goalScheduleId } from '../../workflows/messages.ts';

const TENANT = 'default';
let at: TestHouse;
let runs: Runs;
beforeAll(async () => {
  at = await testHouse({
    rules: (request) =>
      ({ agent: say('Done.'), judge: verdict('candidate_complete'), sceptic: vote('approve') })[roleOf(request)],
  });
  const { database, temporal, taskQueue, catalogue, listener } = at.house;
  runs = createRuns({ database, temporal, taskQueue, catalogue, listener, engineLimitMs: 30_000 });
  mkdirSync(join(at.workspaces, 'nightly'), { recursive: true });
});
afterAll(async () => {
  await at.close();
});

const recurring = async (key: string, schedule: NonNullable<Parameters<Runs['createGoal']>[0]['schedule']>) => {
  const asked = { tenant: TENANT, key, objective: 'each time', workspace: 'nightly', schedule, by: 'a' };
  const created = await runs.createGoal(asked);
  if (created.kind !== 'accepted') throw new Error(created.kind);
  return { id: created.goal, asked };
};

describe.concurrent('a recurring goal', () => {
  it('fires each second: every firing has its outcome, each round its own goal, one at a time', {
    timeout: 60_000,
  }, async () => {
    const { id, asked } = await recurring('each second', { everySeconds: 1 });
    // The same request again makes no second Schedule.
    expect(await runs.createGoal(asked)).toMatchObject({ goal: id, isNew: false });
    const begun = await until(
      'two rounds are complete',
      async () => {
        const { firings } = (await runs.recurring(TENANT, id))!;
        const started = firings.filter(({ outcome }) => outcome === 'started').map(({ goal }) => goal ?? '');
        const goals = await Promise.all(started.map((each) => runs.goal(TENANT, each)));
        return goals.filter((each) => each?.status === 'complete').length >= 2 ? started : null;
      },
      50_000,
    );
    expect(await runs.orderGoal(TENANT, id, { kind: 'cancel', by: 'a' })).toEqual({
      kind: 'done',
      status: 'cancelled',
    });
    for (const each of begun) await goalIs(at, each, 'complete');
    const { firings } = (await runs.recurring(TENANT, id))!;
    expect(new Set(firings.map(({ slot }) => slot)).size).toBe(firings.length);
    // No second of the time between the first and the last is without its row.
    const slots = firings.map(({ slot }) => Date.parse(slot)).toSorted((a, b) => a - b);
    expect(slots).toEqual(slots.map((_, n) => slots[0]! + n * 1_000));
    const sessions = await Promise.all(begun.map(async (each) => (await runs.goal(TENANT, each))?.session));
    expect(new Set(sessions).size).toBe(begun.length);
    expect(await runs.orderGoal(TENANT, id, { kind: 'resume', by: 'a' })).toEqual({
      kind: 'final',
      status: 'cancelled',
    });
  });

  it('paused it fires no more; resumed it does', async () => {
    const { id } = await recurring('paused', { everySeconds: 3_600, paused: true });
    const handle = at.house.temporal.schedule.getHandle(goalScheduleId(id));
    const order = (kind: 'pause' | 'resume' | 'cancel', own: string) =>
      runs.orderGoal(TENANT, id, { kind, id: own, by: 'ann', why: own });
    expect((await handle.describe()).state.paused).toBe(true);
    expect(await order('resume', 'r1')).toEqual({ kind: 'done', status: 'active' });
    expect((await handle.describe()).state.paused).toBe(false);
    expect(await order('pause', 'p1')).toEqual({ kind: 'done', status: 'paused(user)' });
    // The same id again is answered the same, and changes nothing.
    expect(await order('resume', 'r1')).toEqual({ kind: 'done', status: 'active' });
    expect((await handle.describe()).state.paused).toBe(true);
    expect(await runs.orderGoal(TENANT, id, { kind: 'edit', by: 'b', budget: { turns: 3 }, checks: ['true'] })).toEqual(
      {
        kind: 'done',
        status: 'paused(user)',
      },
    );
    await order('cancel', 'c1');
    expect(await order('pause', 'p2')).toEqual({ kind: 'final', status: 'cancelled' });
    const shown = (await runs.recurring(TENANT, id))!;
    expect(shown).toMatchObject({ status: 'cancelled', budget: { turns: 3 }, checks: [{ command: 'true' }] });
    expect(shown.commands.map(({ kind, by, why, answer }) => [kind, by, why, answer])).toEqual([
      ['cancel', 'ann', 'c1', 'cancelled'],
      ['edit', 'b', null, 'paused(user)'],
      ['pause', 'ann', 'p1', 'paused(user)'],
      ['resume', 'ann', 'r1', 'active'],
    ]);
  });

  it('what wakes one goal again and again ends with it, and one that can’t be read begins nothing', async () => {
    const { session } = await at.submit('hello', { workspace: 'nightly' });
    const asked = { tenant: TENANT, key: 'woken', objective: 'once', session, by: 'a' };
    expect(await runs.createGoal({ ...asked, schedule: { cron: '61 * * * *' } })).toMatchObject({ kind: 'refused' });
    const created = await runs.createGoal({ ...asked, schedule: { calendar: { hour: 3 } } });
    if (created.kind !== 'accepted') throw new Error(created.kind);
    await goalIs(at, created.goal, 'complete');
    await until('its Schedule is gone', () =>
      at.house.temporal.schedule
        .getHandle(goalScheduleId(created.goal))
        .describe()
        .then(
          () => null,
          (error: unknown) => error instanceof ScheduleNotFoundError || null,
        ),
    );
  });

  // The engine knows the zones: asked for its times over the nights in which the clocks change.
  it.each([
    ['spring', '2027-03-27', '2027-03-30', ['2027-03-27T01:30', '2027-03-29T00:30']],
    ['autumn', '2027-10-30', '2027-11-02', ['2027-10-30T00:30', '2027-10-31T01:30', '2027-11-01T01:30']],
  ])('at half past two in Berlin, over the change of clocks in %s', async (season, from, to, expected) => {
    const when = season === 'spring' ? { cron: '30 2 * * *' } : { calendar: { hour: 2, minute: '30' } };
    const { id } = await recurring(season, { ...when, timezone: 'Europe/Berlin', paused: true });
    const { namespace } = at.house.temporal.options;
    const seconds = (day: string) => ({ seconds: Date.parse(`${day}T00:00:00Z`) / 1_000 });
    const { startTime } = await at.house.temporal.workflowService.listScheduleMatchingTimes({
      namespace,
      scheduleId: goalScheduleId(id),
      startTime: seconds(from) as never,
      endTime: seconds(to) as never,
    });
    const times = startTime.map((time) => new Date(Number(time.seconds) * 1_000).toISOString().slice(0, 16));
    expect(times).toEqual(expected);
    await runs.orderGoal(TENANT, id, { kind: 'cancel', by: 'a' });
  });
});
