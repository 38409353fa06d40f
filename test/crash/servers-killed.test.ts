import { afterAll, beforeAll, expect, it } from 'vitest';
import type { EmbeddedServers } from '../../worker/embedded/contract.ts';
import type { ServerName } from '../../worker/embedded/server-process.ts';
import { startEmbedded } from '../../worker/embedded/start.ts';
import { until } from '../support/until.ts';
import { makeTempHome } from '../worker/embedded/temp-home.ts';
import { type Child, CrashRun, type CrashProvider, startCrashProvider } from './crash-run.ts';
import { shellRuns } from './scenario.ts';
import { compareWorld, type Expected, UNDISTURBED } from './world.ts';

const LIMIT_MS = 280_000;

let provider: CrashProvider;
let servers: EmbeddedServers;
const temp = makeTempHome();
// Servers of its own: whoever else shared them would be killed with them.
beforeAll(async () => {
  provider = await startCrashProvider();
  servers = await startEmbedded({ home: temp.home, onProgress: () => {} });
});
afterAll(async () => {
  provider.provider.assertDone();
  await provider.provider.close();
  await servers.stop();
  temp.remove();
});

interface Scene {
  readonly sampling: CrashRun;
  readonly commanding: CrashRun;
  readonly workers: readonly Child[];
}

/** Two turns: one in the middle of a sample, the other in the middle of a command. */
async function scene(): Promise<Scene> {
  const sampling = await CrashRun.prepare({ provider, servers, holdSampleAt: 3 });
  const commanding = await CrashRun.prepare({ provider, servers, holdShell: true });
  const workers = [sampling.worker(), commanding.worker()];
  await Promise.all([sampling.submit(), commanding.submit()]);
  await sampling.held?.reached;
  await until('the command runs', () => shellRuns(commanding.workspace), 60_000);
  return { sampling, commanding, workers };
}

async function killServers(...names: readonly ServerName[]): Promise<void> {
  const before = servers.pids();
  for (const name of names) process.kill(before[name] ?? 0, 'SIGKILL');
  await until('the servers run again', () => names.every((name) => servers.pids()[name] !== before[name]), 60_000);
}

async function compare({ sampling, commanding }: Scene, sampled: Expected, commanded: Expected): Promise<void> {
  await sampling.ended();
  await commanding.ended();
  await compareWorld(sampling, sampled);
  await compareWorld(commanding, commanded);
}

async function inScene(act: (scene: Scene) => Promise<void>): Promise<void> {
  const opened = await scene();
  try {
    await act(opened);
  } finally {
    await opened.sampling.close();
    await opened.commanding.close();
  }
}

/** The worker lives: whether an attempt counts as lost depends on how long the server was away. */
const ASKED_AGAIN: Expected = { ...UNDISTURBED, askedAgain: 1 };
const EITHER: Expected = { ...UNDISTURBED, shell: 'either' };

it('Temporal is killed: the worker goes on with what it was doing', { timeout: LIMIT_MS }, () =>
  inScene(async (opened) => {
    await killServers('temporal');
    opened.sampling.held?.release();
    opened.commanding.releaseShell();
    await compare(opened, ASKED_AGAIN, EITHER);
  }),
);

it('Temporal is killed and the work ends while it is away: its results are not lost', { timeout: LIMIT_MS }, () =>
  inScene(async (opened) => {
    const killed = killServers('temporal');
    opened.sampling.held?.release();
    opened.commanding.releaseShell();
    await killed;
    await compare(opened, ASKED_AGAIN, EITHER);
  }),
);

it('PostgreSQL is killed and the work ends while it is away: its results are not lost', { timeout: LIMIT_MS }, () =>
  inScene(async (opened) => {
    const killed = killServers('postgres');
    opened.sampling.held?.release();
    opened.commanding.releaseShell();
    await killed;
    await compare(opened, UNDISTURBED, UNDISTURBED);
  }),
);

it(
  'Temporal, PostgreSQL and the workers are killed: the turns go on from their last click',
  { timeout: LIMIT_MS },
  () =>
    inScene(async (opened) => {
      const killed = killServers('temporal', 'postgres');
      await Promise.all(opened.workers.map((worker) => worker.kill()));
      await killed;
      opened.sampling.worker();
      opened.commanding.worker();
      await compare(opened, ASKED_AGAIN, { ...UNDISTURBED, shell: 'unknown' });
      expect(opened.sampling.provider.faults).toEqual([]);
    }),
);
