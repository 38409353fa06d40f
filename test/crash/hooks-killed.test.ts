import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { and, eq, isNull } from 'drizzle-orm';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { HOOKS_RECEIVER } from '../../activities/store/reports.ts';
import { outbox } from '../../activities/store/schema.ts';
import { readEvents } from '../../activities/store/events.ts';
import { only } from '../support/engine-facts.ts';
import { until } from '../support/until.ts';
import { CrashRun, type CrashProvider, startCrashProvider } from './crash-run.ts';
import type { Boundary } from './kill-at.ts';

let provider: CrashProvider;
beforeAll(async () => {
  provider = await startCrashProvider();
});
afterAll(async () => {
  provider.provider.assertDone();
  await provider.provider.close();
});

interface Case {
  readonly name: string;
  readonly deaths: readonly Boundary[];
  /** How often the hook is asked for the first time, and told of the end. */
  readonly asked: number;
  readonly told: number;
}

const CASES: readonly Case[] = [
  {
    name: 'around the stop gate',
    // The hook is asked again, since nobody knows what it said.
    deaths: [
      { when: 'before', at: 'stopGate' },
      { when: 'after', at: 'stopGate' },
    ],
    asked: 2,
    told: 1,
  },
  {
    name: 'around the end',
    deaths: [
      { when: 'before', at: 'writeEnd' },
      { when: 'after', at: 'writeEnd' },
    ],
    asked: 1,
    told: 1,
  },
  // The hook is told again, when the lease of the dead one is over.
  { name: 'before a report is closed', deaths: [{ when: 'before', at: 'closeReport' }], asked: 1, told: 2 },
];

it.concurrent.each(CASES)(
  'killed $name: one block, one kind of stop, one id',
  {
    timeout: 280_000,
  },
  async ({ deaths, asked, told }) => {
    const servers = { temporalAddress: inject('temporalAddress'), databaseUrl: inject('databaseUrl') };
    const run = await CrashRun.prepare({ provider, servers, hooks: 'noting' });
    try {
      const { session } = await run.submit();
      for (const death of deaths) await run.dies(run.worker(death), death);
      run.worker();
      await run.ended();
      const { db } = run.house.database;
      const untold = and(eq(outbox.receiver, HOOKS_RECEIVER), isNull(outbox.acknowledgedAt));
      await until('the report is told', async () => (await db.$count(outbox, untold)) === 0, 120_000);

      const lines = (name: string) =>
        readFileSync(join(run.folder, name), 'utf8')
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line) as Record<string, unknown>);
      const asks = lines('asked').map(({ ask, stopHookActive }) => [ask, stopHookActive]);
      expect(asks).toEqual([...Array.from({ length: asked }, () => [1, false]), [2, true]]);
      const stop = { event: 'Stop', id: `stop/${session}/1`, reason: 'COMPLETED', recordedBy: 'turn' };
      expect(lines('told')).toMatchObject(Array.from({ length: told }, () => stop));
      const events = await readEvents(db, session, 0, 10_000);
      expect(only(events, 'stop_gate.answered').map(({ answer }) => answer)).toEqual(['block', 'pass']);
      expect(only(events, 'turn.ended')).toHaveLength(1);
    } finally {
      await run.close();
    }
  },
);
