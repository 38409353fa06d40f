import { chmodSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import { supervise, type Supervised } from '../../../activities/process/supervise.ts';
import { lastLogLine, withLogFile } from '../log-file.ts';
import { choosePort, isOpen } from '../ports.ts';
import { ServerProcess } from '../server-process.ts';
import { recordServer } from '../servers-file.ts';
import { listensOn } from '../socket-holder.ts';
import { findTemporal, usualSources } from './find.ts';
import { ensureSearchAttributes, SEARCH_ATTRIBUTES } from './search-attributes.ts';

const READY_WITHIN_MS = 45_000;
const PORT_ATTEMPTS = 4;
const STOP_GRACE_MS = 10_000;

/** Measured in docs: without them an activity waits up to 50 ms and a timer up to 1 s. */
const DYNAMIC_CONFIG = [
  'history.transferProcessorMaxPollRPS=100000',
  'history.timerProcessorMaxPollRPS=100000',
  'history.timerProcessorMaxTimeShift="1ms"',
];

/** With SQLite's defaults an activity costs 17 ms more. */
const PRAGMAS = ['journal_mode=WAL', 'synchronous=NORMAL'];

export interface TemporalOptions {
  readonly home: string;
  readonly ports: { readonly temporal?: number; readonly ui?: number };
  onProgress(line: string): void;
}

export interface EmbeddedTemporal {
  readonly server: ServerProcess;
  readonly address: string;
  readonly uiUrl: string;
}

/** Ports that were not asked for by name are chosen again should somebody take them meanwhile. */
export async function startTemporal(options: TemporalOptions): Promise<EmbeddedTemporal> {
  const binary = await findTemporal(usualSources(options.home, options.onProgress));
  for (let attempt = 1; ; attempt++) {
    const port = await choosePort({ asked: options.ports.temporal, usual: 7233, purpose: 'Temporal' });
    const uiPort = await choosePort({ asked: options.ports.ui, usual: 8233, purpose: "Temporal's UI" });
    try {
      return await startAt(binary, port, uiPort, options);
    } catch (error) {
      const taken = (await isOpen(`127.0.0.1:${port}`)) || (await isOpen(`127.0.0.1:${uiPort}`));
      if (!taken || attempt === PORT_ATTEMPTS) throw error;
    }
  }
}

async function startAt(
  binary: string,
  port: number,
  uiPort: number,
  options: TemporalOptions,
): Promise<EmbeddedTemporal> {
  const { home, onProgress } = options;
  const log = join(home, 'logs', 'temporal.log');
  const database = join(home, 'temporal.sqlite');
  const args = serverArgs(database, port, uiPort);
  const server = await ServerProcess.start({
    name: 'temporal',
    launch: () => withLogFile(log, (fd) => launch(binary, args, home, fd)),
    ready: (signal, pid) => untilAnswers({ port, pid, database, signal }),
    readyWithinMs: READY_WITHIN_MS,
    stopSignal: 'SIGTERM',
    lastLogLine: () => lastLogLine(log),
    started: (identity) => recordServer(home, 'temporal', identity),
    onProgress,
  });
  return { server, address: `127.0.0.1:${port}`, uiUrl: `http://127.0.0.1:${uiPort}` };
}

function serverArgs(database: string, port: number, uiPort: number): string[] {
  return [
    ...['server', 'start-dev', '--ip', '127.0.0.1', '--port', `${port}`, '--ui-port', `${uiPort}`],
    ...['--db-filename', database, '--log-level', 'error', '--log-format', 'json'],
    ...PRAGMAS.flatMap((pragma) => ['--sqlite-pragma', pragma]),
    ...DYNAMIC_CONFIG.flatMap((value) => ['--dynamic-config-value', value]),
    // They count only when the namespace is made; ensureSearchAttributes does the rest.
    ...SEARCH_ATTRIBUTES.flatMap((name) => ['--search-attribute', `${name}=Keyword`]),
  ];
}

function launch(binary: string, args: readonly string[], home: string, output: number): Promise<Supervised> {
  return supervise({
    command: binary,
    args,
    cwd: home,
    env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? home },
    stopSignal: 'SIGTERM',
    graceMs: STOP_GRACE_MS,
    reapGroup: true,
    output,
  });
}

interface Expected {
  readonly port: number;
  readonly pid: number;
  readonly database: string;
  readonly signal: AbortSignal;
}

async function untilAnswers({ port, pid, database, signal }: Expected): Promise<void> {
  while (!signal.aborted) {
    // Another Temporal may answer there while ours fails: two homes would share one server.
    const connection = listensOn(pid, port) === false ? null : await connect(`127.0.0.1:${port}`);
    if (connection === null) {
      await sleep(20);
      continue;
    }
    try {
      await ensureSearchAttributes(connection);
      hide(database);
      return;
    } finally {
      await connection.close();
    }
  }
  throw new Error('gave up');
}

/** Connecting asks the server for its system info, so a connection is an answer. */
async function connect(address: string): Promise<Connection | null> {
  // gRPC waits a second after a refused connection before it tries again: we look first.
  if (!(await isOpen(address))) return null;
  try {
    return await Connection.connect({ address, connectTimeout: 2_000 });
  } catch {
    return null;
  }
}

/** The server makes its files readable by all, and can't be told otherwise. */
function hide(database: string): void {
  for (const path of [database, `${database}-wal`, `${database}-shm`]) if (existsSync(path)) chmodSync(path, 0o600);
}
