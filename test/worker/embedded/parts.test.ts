import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { supervise } from '../../../activities/process/supervise.ts';
import { openHome } from '../../../worker/embedded/home.ts';
import { type Holder, lockAddress, takeLock } from '../../../worker/embedded/home-lock.ts';
import { choosePort } from '../../../worker/embedded/ports.ts';
import { ensureCluster } from '../../../worker/embedded/postgres/cluster.ts';
import { choosePlace } from '../../../worker/embedded/postgres/place.ts';
import { ServerProcess } from '../../../worker/embedded/server-process.ts';
import { startEmbedded } from '../../../worker/embedded/start.ts';
import { findTemporal } from '../../../worker/embedded/temporal/find.ts';
import { SetupError } from '../../../worker/setup-error.ts';
import { makeTempHome, until } from './temp-home.ts';

const cleanups: (() => void)[] = [];
afterEach(() => cleanups.splice(0).forEach((clean) => clean()));

function newHome(): string {
  const { home, remove } = makeTempHome();
  cleanups.push(remove);
  return openHome(home);
}

test('a port that was asked for by name and is in use is a clear error; the usual one gives way', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await until(() => taken.listening);
  const { port } = taken.address() as { port: number };
  await expect(choosePort({ asked: port, usual: 7233, purpose: 'Temporal' })).rejects.toThrow(
    new SetupError(`Port ${port} for Temporal is in use: end what uses it, or ask for another port.`),
  );
  expect(await choosePort({ asked: undefined, usual: port, purpose: 'Temporal' })).not.toBe(port);
  taken.close();
});

test('of several that want the lock at once, one gets it', async () => {
  const home = newHome();
  const first: Holder = { pawl: 1, pid: 1, version: '0', status: 'starting' };
  const locks = await Promise.all([1, 2, 3].map(() => takeLock(home, first)));
  const got = locks.filter((lock) => lock !== null);
  expect(got.length).toBe(1);
  await got[0]?.release();
});

test('a holder that does not answer as Pawl is named in the error', async () => {
  const home = newHome();
  const mute = createServer().listen(lockAddress(home));
  await until(() => mute.listening);
  const start = startEmbedded({ home, onProgress: () => {} });
  await expect(start).rejects.toThrow(SetupError);
  await expect(start).rejects.toThrow(
    new RegExp(`held by .*${process.platform === 'linux' ? process.pid : ''}.*end it`),
  );
  mute.close();
});

test('a half-made data folder is made again', async () => {
  const place = choosePlace(newHome());
  mkdirSync(`${place.dataDir}.new-dead`);
  mkdirSync(place.dataDir);
  writeFileSync(join(place.dataDir, 'half'), '');
  await ensureCluster(place, 'secret', () => {});
  expect(existsSync(join(place.dataDir, 'PG_VERSION'))).toBe(true);
  const beside = readdirSync(dirname(place.dataDir)).filter((name) => name.startsWith(basename(place.dataDir)));
  expect(beside.filter((name) => name.includes('.new-'))).toEqual([]);
  expect(existsSync(join(place.dataDir, 'half'))).toBe(false);
}, 20_000);

test('Temporal is the first program of that name that is one: PATH, then the home, then the cache', async () => {
  const home = newHome();
  const program = (folder: string, says: string) => {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'temporal'), `#!/bin/sh\necho "${says}"\n`);
    chmodSync(join(folder, 'temporal'), 0o755);
  };
  const [path, cache] = [join(home, 'path'), join(home, 'cache')];
  const find = () => findTemporal({ home, cache, path, onProgress: () => {} });
  program(join(cache, 'bin'), 'temporal version 1');
  program(path, 'another temporal');
  expect(await find()).toBe(join(cache, 'bin', 'temporal'));
  program(join(home, 'bin'), 'temporal version 1');
  expect(await find()).toBe(join(home, 'bin', 'temporal'));
  program(path, 'temporal version 1');
  expect(await find()).toBe(join(path, 'temporal'));
});

function sleeper(command = 'sleep', args: readonly string[] = ['60']) {
  const lines: string[] = [];
  const spec = {
    name: 'temporal' as const,
    launch: () =>
      supervise({
        command,
        args,
        cwd: '/',
        env: { PATH: '/usr/bin:/bin' },
        stopSignal: 'SIGTERM',
        graceMs: 100,
        reapGroup: true,
        output: 'pipe',
      }),
    ready: async () => {},
    readyWithinMs: 5_000,
    stopSignal: 'SIGTERM' as const,
    lastLogLine: () => 'the last line',
    started: () => {},
    onProgress: (line: string) => void lines.push(line),
  };
  return { spec, lines };
}

test('a server that dies again and again is given up after five restarts', async () => {
  const { spec, lines } = sleeper();
  const server = await ServerProcess.start(spec);
  let failed = false;
  void server.failed.then(() => {
    failed = true;
  });
  for (let kills = 1; kills <= 6; kills++) {
    const { pid } = server;
    process.kill(pid, 'SIGKILL');
    await until(() => failed || server.pid !== pid);
    expect(failed).toBe(kills === 6);
  }
  expect(lines.filter((line) => line.includes('runs again')).length).toBe(5);
}, 20_000);

test('a first start that fails is a SetupError with the last line of the log', async () => {
  const { spec } = sleeper('false', []);
  const never = { ...spec, ready: () => new Promise<void>(() => {}) };
  await expect(ServerProcess.start(never)).rejects.toThrow(
    new SetupError('temporal could not start (exit code 1): the last line'),
  );
});

// Found as a race: the other's server answers on the port that ours could not bind.
test('homes that start at once never share a Temporal server', async () => {
  const given = { databaseUrl: 'postgresql://db.example/pawl', onProgress: () => {} };
  const started = await Promise.all([newHome(), newHome(), newHome()].map((home) => startEmbedded({ home, ...given })));
  expect(new Set(started.map((servers) => servers.temporalAddress)).size).toBe(3);
  expect(new Set(started.map((servers) => servers.pids().temporal)).size).toBe(3);
  await Promise.all(started.map((servers) => servers.stop()));
}, 30_000);
