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

const DEATHS: readonly Boundary[] = [
  // The hook is asked again, since nobody knows what it said.
  { when: 'before', at: 'stopGate' },
  { when: 'after', at: 'stopGate' },
  { when: 'before', at: 'writeEnd' },
  { when: 'after', at: 'writeEnd' },
  // The hook is told again, when the lease of the dead one is over.
  { when: 'before', at: 'closeReport' },
];

it('killed around the stop gate, the end and its report: one block, one kind of stop, one id', {
  timeout: 280_000,
}, async () => {
  const servers = { temporalAddress: inject('temporalAddress'), databaseUrl: inject('databaseUrl') };
  const run = await CrashRun.prepare({ provider, servers, hooks: 'noting' });
  try {
    const { session } = await run.submit();
    for (const death of DEATHS) await run.dies(run.worker(death), death);
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
    expect(lines('asked').map(({ ask, stopHookActive }) => [ask, stopHookActive])).toEqual([
      [1, false],
      [1, false],
      [2, true],
    ]);
    const stop = { event: 'Stop', id: `stop/${session}/1`, reason: 'COMPLETED', recordedBy: 'turn' };
    expect(lines('told')).toMatchObject([stop, stop]);
    const events = await readEvents(db, session, 0, 10_000);
    expect(only(events, 'stop_gate.answered').map(({ answer }) => answer)).toEqual(['block', 'pass']);
    expect(only(events, 'turn.ended')).toHaveLength(1);
  } finally {
    await run.close();
  }
});
