import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { input } from '../../../activities/store/schema.ts';
import { createRuns } from '../../../client/index.ts';
import { say } from '../../../testing/index.ts';
import { type TestHouse, testHouse } from '../../support/test-house.ts';
import { seedJob, storeOnly } from '../seed.ts';

let at: TestHouse;
beforeAll(async () => {
  at = await testHouse({ rules: () => say('Done.'), worker: false });
});
afterAll(() => at.close());

test('a job that nobody takes says that no worker is there', async () => {
  const { job, session } = await at.submit('waits for a worker');
  const runs = createRuns(at.house);
  const queue = at.house.taskQueue;
  expect(await runs.why('default', job)).toMatchObject({
    id: job,
    job,
    session,
    turn: null,
    state: 'queued',
    chain: [],
    advice: [`No worker asks for work on ${queue}: start one with \`pawl worker\`, or \`pawl up\`.`],
  });
  await at.house.database.db.update(input).set({ status: 'withdrawn' }).where(eq(input.session, session));
  expect(await runs.why('default', job)).toMatchObject({
    state: 'never_ran',
    advice: ['It was withdrawn before it began: hand it in again if it is still wanted.'],
  });
});

test('while the engine is away the store still answers, and says so', async () => {
  const alone = await storeOnly();
  try {
    const { job } = await seedJob(alone.database);
    expect(await alone.runs.why('default', job)).toMatchObject({
      state: 'queued',
      advice: ['Bring Temporal back: the work goes on by itself then.'],
    });
  } finally {
    await alone.close();
  }
});
