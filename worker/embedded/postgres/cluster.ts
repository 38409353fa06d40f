import { execFile } from 'node:child_process';
import {
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { SetupError } from '../../setup-error.ts';
import type { PostgresPlace } from './place.ts';

const run = promisify(execFile);
const INITDB_LIMIT_MS = 120_000;

/** Makes the data folder once. It gets its name only when it is whole, so a half-made one is never used. */
export async function ensureCluster(
  place: PostgresPlace,
  password: string,
  onProgress: (line: string) => void,
): Promise<void> {
  if (existsSync(join(place.dataDir, 'PG_VERSION'))) return;
  onProgress('making the database (once)');
  removeHalfMade(place.dataDir);
  const fresh = mkdtempSync(`${place.dataDir}.new-`);
  const passwordFile = join(place.socketDir, '.password');
  rmSync(passwordFile, { force: true });
  writeFileSync(passwordFile, password, { mode: 0o600, flag: 'wx' });
  const { user } = place;
  if (user !== null) for (const path of [fresh, passwordFile]) chownSync(path, user.uid, user.gid);
  try {
    await initdb(place, fresh, passwordFile);
  } finally {
    rmSync(passwordFile, { force: true });
  }
  renameSync(fresh, place.dataDir);
  syncFolder(dirname(place.dataDir));
}

async function initdb(place: PostgresPlace, dataDir: string, passwordFile: string): Promise<void> {
  const args = [
    `--pgdata=${dataDir}`,
    '--username=pawl',
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
  ];
  const identity = place.user ? { uid: place.user.uid, gid: place.user.gid } : {};
  const options = {
    cwd: '/',
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
    timeout: INITDB_LIMIT_MS,
    ...identity,
  };
  try {
    await run(join(place.native, 'bin', 'initdb'), args, options);
  } catch (error) {
    rmSync(dataDir, { recursive: true, force: true });
    const { stderr, message } = error as Error & { stderr?: string };
    throw new SetupError(`The database could not be made: ${stderr?.trim().split('\n').at(-1) || message}`);
  }
}

function removeHalfMade(dataDir: string): void {
  const prefix = `${basename(dataDir)}.new-`;
  for (const name of readdirSync(dirname(dataDir)).filter((entry) => entry.startsWith(prefix))) {
    // The initdb of a killed owner may still be writing.
    rmSync(join(dirname(dataDir), name), { recursive: true, force: true, maxRetries: 20, retryDelay: 20 });
  }
  // A data folder without PG_VERSION is none; PostgreSQL would not start on it.
  rmSync(dataDir, { recursive: true, force: true });
}

function syncFolder(path: string): void {
  const fd = openSync(path, 'r');
  fsyncSync(fd);
  closeSync(fd);
}
