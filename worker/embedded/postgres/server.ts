import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';
import pg from 'pg';
import { supervise, type Supervised } from '../../../activities/process/supervise.ts';
import { SetupError } from '../../setup-error.ts';
import { ensureSecret } from '../home.ts';
import { lastLogLine, withLogFile } from '../log-file.ts';
import { ServerProcess } from '../server-process.ts';
import { recordServer } from '../servers-file.ts';
import { ensureCluster } from './cluster.ts';
import { waitForEmpty } from './leftovers.ts';
import { choosePlace, type PostgresPlace } from './place.ts';
import { databaseUrl, PASSWORD } from './url.ts';

const DATABASE = 'pawl';
const READY_WITHIN_MS = 60_000;
const STOP_GRACE_MS = 10_000;

const SETTINGS = {
  listen_addresses: '',
  unix_socket_permissions: '0700',
  port: '5432',
  shared_buffers: '64MB',
  max_connections: '100',
  max_wal_size: '256MB',
  // No replicas here: less to write.
  wal_level: 'minimal',
  max_wal_senders: '0',
  jit: 'off',
  log_timezone: 'UTC',
  timezone: 'UTC',
};

export interface EmbeddedPostgres {
  readonly server: ServerProcess;
  readonly databaseUrl: string;
  readonly socketDir: string;
}

export async function startPostgres(home: string, onProgress: (line: string) => void): Promise<EmbeddedPostgres> {
  const place = choosePlace(home);
  const password = ensureSecret(home, PASSWORD);
  await ensureCluster(place, password, onProgress);
  const log = join(home, 'logs', 'postgres.log');
  const server = await ServerProcess.start({
    name: 'postgres',
    launch: () => withLogFile(log, (fd) => launch(place, fd)),
    ready: (signal) => untilDatabase(place.socketDir, password, signal),
    readyWithinMs: READY_WITHIN_MS,
    stopSignal: 'SIGINT',
    lastLogLine: () => lastLogLine(log),
    started: (identity) => recordServer(home, 'postgres', identity),
    onProgress,
  });
  return { server, socketDir: place.socketDir, databaseUrl: databaseUrl(place.socketDir, DATABASE, password) };
}

async function launch(place: PostgresPlace, output: number): Promise<Supervised> {
  await waitForEmpty(place.dataDir);
  const settings = { ...SETTINGS, unix_socket_directories: place.socketDir };
  return supervise({
    command: join(place.native, 'bin', 'postgres'),
    args: ['-D', place.dataDir, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    cwd: place.dataDir,
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
    ...(place.user === null ? {} : { uid: place.user.uid, gid: place.user.gid }),
    stopSignal: 'SIGINT',
    graceMs: STOP_GRACE_MS,
    reapGroup: true,
    output,
  });
}

async function untilDatabase(socketDir: string, password: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const code = await query(databaseUrl(socketDir, DATABASE, password), 'SELECT 1');
    if (code === null) return;
    if (code === INVALID_CATALOG)
      await query(databaseUrl(socketDir, 'postgres', password), `CREATE DATABASE ${DATABASE}`);
    else if (code === INVALID_PASSWORD)
      throw new SetupError(
        'The database does not take the password in the file "secrets" of the Pawl home: bring the old file back.',
      );
    else await sleep(20);
  }
  throw new Error('gave up');
}

const INVALID_CATALOG = '3D000';
const INVALID_PASSWORD = '28P01';

/** Null, or the code of the error. */
async function query(connectionString: string, sql: string): Promise<string | null> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 2_000 });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query(sql);
    return null;
  } catch (error) {
    return (error as { code?: string }).code ?? 'unknown';
  } finally {
    await client.end().catch(() => {});
  }
}
