import { eq } from 'drizzle-orm';
import { expect } from 'vitest';
import type { Db } from '../../../activities/store/database.ts';
import { storeGoal } from '../../../activities/store/goals.ts';
import { input } from '../../../activities/store/schema.ts';
import { id, seedJob } from './seed.ts';

export const BUDGET = { turns: 5, tokens: 1_000, microUsd: 400, runningMs: 60_000 };

/** A session without a turn or an input in it, and its goal. */
export async function seedGoal(db: Db): Promise<{ readonly goal: string; readonly session: string }> {
  const { session: owner, input: prompt } = await seedJob(db);
  await db.update(input).set({ status: 'withdrawn' }).where(eq(input.id, prompt));
  const made = id('goal');
  const stored = await storeGoal(db, {
    id: made,
    tenant: 'default',
    session: owner,
    objective: 'first',
    checks: [],
    judge: {},
    budget: BUDGET,
    sceptics: 1,
    by: null,
    fingerprint: 'f',
  });
  expect(stored).toBe('stored');
  return { goal: made, session: owner };
}
