import { afterAll, beforeAll, expect, it } from 'vitest';
import { startedAt } from '../../activities/process/identity.ts';
import { until } from '../support/until.ts';
import { type Child, CrashRun, type CrashProvider, startCrashProvider } from './crash-run.ts';
import type { ProcessReady } from './crash-config.ts';
import { shellRuns } from './scenario.ts';
import { compareWorld } from './world.ts';

let provider: CrashProvider;
beforeAll(async () => {
  provider = await startCrashProvider();
});
afterAll(async () => {
  provider.provider.assertDone();
  await provider.provider.close();
});

interface Owner {
  readonly child: Child;
  readonly ready: ProcessReady;
}

/** As `pawl up`: one process that brings both servers, owns them, and works. */
async function startOwner(run: CrashRun): Promise<Owner> {
  const child = run.worker();
  const ready = await child.ready;
  await run.open({ temporalAddress: ready.temporalAddress, databaseUrl: ready.databaseUrl ?? '' });
  return { child, ready };
}

async function killOwner(run: CrashRun, { child, ready }: Owner): Promise<void> {
  const { temporal = 0, postgres = 0 } = ready.pids;
  expect([startedAt(temporal), startedAt(postgres)]).not.toContain(null);
  await child.kill();
  await until('both servers are gone', () => startedAt(temporal) === null && startedAt(postgres) === null);
  await run.leave();
}

it('killed in the middle of a sample, then of a command: its servers go too, and the next one goes on', {
  timeout: 280_000,
}, async () => {
  const run = await CrashRun.prepare({ provider, servers: null, holdSampleAt: 2, holdShell: true });
  try {
    const first = await startOwner(run);
    await run.submit();
    await run.held?.reached;
    await killOwner(run, first);
    const second = await startOwner(run);
    await until('the command runs', () => shellRuns(run.workspace), 60_000);
    await killOwner(run, second);
    const third = await startOwner(run);
    await run.ended();
    await compareWorld(run, { shell: 'unknown', lines: 1, askedAgain: 1 });
    await killOwner(run, third);
  } finally {
    await run.close();
  }
});
