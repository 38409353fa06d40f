import { and, eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Deps } from '../../../activities/deps.ts';
import { fireWake } from '../../../activities/goal/fire-wake.ts';
import { fireTemplate, isOver, roundOf, wakeBySchedule } from '../../../activities/store/firings.ts';
import { findGoal } from '../../../activities/store/goals.ts';
import { contentHash } from '../../../activities/store/hash.ts';
import { goal, goalFiring, goalTemplate, wake } from '../../../activities/store/schema.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { BUDGET, seedGoal as seedGoalIn } from './seed-goals.ts';
import { AGENT, atOnce, id, seedJob } from './seed.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
});
afterAll(() => at.close());

const seedGoal = () => seedGoalIn(at.db);

describe('firings', () => {
  const slot = (n: number) => new Date(Date.UTC(2020, 0, 1, 3, 0, n));

  async function seedTemplate(): Promise<string> {
    await seedJob(at.db);
    const made = id('goal');
    await at.db.insert(goalTemplate).values({
      id: made,
      tenant: 'default',
      agent: contentHash(AGENT),
      workspaceKind: 'host',
      workspacePath: '/w',
      workspaceQueue: 'q',
      objective: 'each night',
      checks: [],
      judge: {},
      budget: BUDGET,
      sceptics: 1,
      schedule: { cron: '0 3 * * *' },
      fingerprint: 'f',
    });
    return made;
  }

  const firings = async (template: string) =>
    (await at.db.select().from(goalFiring).where(eq(goalFiring.template, template)).orderBy(goalFiring.slot)).map(
      ({ outcome, goal: of }) => [outcome, of],
    );

  test('those that were missed collapse into the first that is handled; each has its row', async () => {
    const template = await seedTemplate();
    for (const n of [1, 2, 3, 1]) await fireTemplate(at.db, template, slot(n));
    const begun = roundOf(template, slot(1));
    expect(await firings(template)).toEqual([
      ['started', begun],
      ['superseded', begun],
      ['superseded', begun],
    ]);
    expect(await findGoal(at.db, begun)).toMatchObject({ objective: 'each night', status: 'active', template });
  });

  test('one that comes after the recurring goal is over has its row, and begins nothing', async () => {
    const template = await seedTemplate();
    await at.db.update(goalTemplate).set({ endedAt: new Date() }).where(eq(goalTemplate.id, template));
    expect(await fireTemplate(at.db, template, slot(1))).toBeNull();
    expect(await firings(template)).toEqual([['cancelled', null]]);
  });

  test('are over with the recurring goal, and with the goal that they wake', async () => {
    const template = { target: 'template', id: await seedTemplate() } as const;
    const woken = { target: 'goal', id: (await seedGoal()).goal } as const;
    expect([await isOver(at.db, template), await isOver(at.db, woken)]).toEqual([false, false]);
    await at.db.update(goalTemplate).set({ endedAt: new Date() }).where(eq(goalTemplate.id, template.id));
    await at.db.update(goal).set({ isFinal: true }).where(eq(goal.id, woken.id));
    expect([await isOver(at.db, template), await isOver(at.db, woken)]).toEqual([true, true]);
    // One more firing takes a Schedule away that was left behind.
    const ended: string[] = [];
    const engine = {
      lookGoal: () => Promise.resolve(),
      endSchedule: (id: string) => Promise.resolve(void ended.push(id)),
    };
    const deps = { database: { db: at.db }, engine } as unknown as Deps;
    await fireWake(deps, { ...template, slotMs: slot(1).getTime() });
    await fireWake(deps, { ...woken, slotMs: slot(1).getTime() });
    await fireWake(deps, { target: 'template', id: await seedTemplate(), slotMs: slot(1).getTime() });
    expect(ended).toEqual([template.id, woken.id]);
  });

  test('one that comes while the goal before it is open is skipped, and the next one after its end begins', async () => {
    const template = await seedTemplate();
    const soon = (ms: number) => new Date(Date.now() + ms);
    const [first, second, third] = [soon(60_000), soon(120_000), soon(180_000)];
    await fireTemplate(at.db, template, first);
    await fireTemplate(at.db, template, second);
    await at.db.update(goal).set({ isFinal: true }).where(eq(goal.template, template));
    await fireTemplate(at.db, template, third);
    expect(await firings(template)).toEqual([
      ['started', roundOf(template, first)],
      ['skipped', roundOf(template, first)],
      ['started', roundOf(template, third)],
    ]);
  });

  test('the same firing at once, six times, begins one goal', async () => {
    const template = await seedTemplate();
    const hold = sql`select 1 from pawl.goal_template where id = ${template} for update`;
    const work = () => fireTemplate(at.db, template, slot(1));
    const begun = await atOnce(
      at.db,
      hold,
      Array.from({ length: 6 }, () => work),
    );
    expect(new Set(begun)).toEqual(new Set([roundOf(template, slot(1))]));
    expect(await at.db.$count(goal, eq(goal.template, template))).toBe(1);
  });

  test('a goal that is only woken hears of missed firings once', async () => {
    const own = await seedGoal();
    for (const n of [1, 2, 2, 3]) await wakeBySchedule(at.db, own.goal, slot(n));
    const rows = await at.db.select().from(wake).where(eq(wake.goal, own.goal)).orderBy(wake.key);
    expect(rows.map(({ outcome }) => outcome)).toEqual([null, 'superseded', 'superseded']);
  });

  // Where each firing is late by more than its interval, each was covered by the one before, and none ever began.
  test('those that are always late still begin rounds: what was covered covers nothing', async () => {
    const template = await seedTemplate();
    const own = await seedGoal();
    const late = (n: number) => new Date(Date.UTC(2020, 0, 1, 3, n));
    for (const n of [1, 2, 3, 4, 5]) {
      await fireTemplate(at.db, template, late(n));
      await wakeBySchedule(at.db, own.goal, late(n));
      // Each is handled two and a half minutes after its time.
      const handled = sql`${new Date(late(n).getTime() + 150_000)}`;
      const firing = and(eq(goalFiring.template, template), eq(goalFiring.slot, late(n)));
      await at.db.update(goalFiring).set({ createdAt: handled }).where(firing);
      const key = `schedule/${late(n).toISOString()}`;
      await at.db
        .update(wake)
        .set({ createdAt: handled })
        .where(and(eq(wake.goal, own.goal), eq(wake.key, key)));
      await at.db.update(goal).set({ isFinal: true }).where(eq(goal.template, template));
    }
    const expected = ['started', 'superseded', 'superseded', 'started', 'superseded'];
    expect((await firings(template)).map(([outcome]) => outcome)).toEqual(expected);
    const wakes = await at.db.select().from(wake).where(eq(wake.goal, own.goal)).orderBy(wake.key);
    expect(wakes.map(({ outcome }) => (outcome === null ? 'started' : outcome))).toEqual(expected);
  });
});
