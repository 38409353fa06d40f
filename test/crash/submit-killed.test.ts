import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { session } from '../../activities/store/schema.ts';
import { CrashRun, type CrashProvider, startCrashProvider } from './crash-run.ts';
import { compareWorld, UNDISTURBED } from './world.ts';

let provider: CrashProvider;
beforeAll(async () => {
  provider = await startCrashProvider();
});
afterAll(async () => {
  provider.provider.assertDone();
  await provider.provider.close();
});

async function prepared(): Promise<CrashRun> {
  const servers = { temporalAddress: inject('temporalAddress'), databaseUrl: inject('databaseUrl') };
  return await CrashRun.prepare({ provider, servers });
}

it.concurrent('a job whose submitter died between its commit and the signal runs all the same', {
  timeout: 280_000,
}, async () => {
  const run = await prepared();
  try {
    await run.worker().ready;
    const death = { when: 'after', at: 'storeJob' } as const;
    await run.dies(run.submitter(death), death);
    expect((await run.stored()).length).toBe(1);
    await run.ended();
    await compareWorld(run, UNDISTURBED);
  } finally {
    await run.close();
  }
});

it.concurrent('a submitter that died before its commit has left nothing, and its key is free', {
  timeout: 280_000,
}, async () => {
  const run = await prepared();
  try {
    const death = { when: 'before', at: 'storeJob' } as const;
    await run.dies(run.submitter(death), death);
    expect(await run.stored()).toEqual([]);
    await run.submit();
    expect((await run.stored()).length).toBe(1);
    run.worker();
    await run.ended();
    await compareWorld(run, UNDISTURBED);
  } finally {
    await run.close();
  }
});

it.concurrent('the same key handed in many times at once is one job', { timeout: 280_000 }, async () => {
  const run = await prepared();
  try {
    const answers = await Promise.all(Array.from({ length: 8 }, () => run.submit()));
    expect(new Set(answers.map((answer) => answer.job)).size).toBe(1);
    // None, where the one that stored it was not answered and asked again.
    expect(answers.filter((answer) => answer.isNew).length).toBeLessThanOrEqual(1);
    expect((await run.stored()).length).toBe(1);
    expect((await run.house.database.db.select().from(session)).length).toBe(1);
    run.worker();
    await run.ended();
    await compareWorld(run, UNDISTURBED);
  } finally {
    await run.close();
  }
});
