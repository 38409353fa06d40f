import { setTimeout as sleep } from 'node:timers/promises';
import { SetupError } from '../setup-error.ts';
import type { EmbeddedOptions, EmbeddedServers } from './contract.ts';
import { openHome, readSecret } from './home.ts';
import { askHolder, type Holder, type HomeLock, lockAddress, takeLock } from './home-lock.ts';
import { own } from './own.ts';
import { describeHolder } from './socket-holder.ts';
import { databaseUrl, PASSWORD } from './postgres/url.ts';
import { greeting } from './version.ts';

const STARTING_LIMIT_MS = 10 * 60_000;

/** Brings the servers of this home, or joins the process that already has. Throws SetupError. */
export async function startEmbedded(options: EmbeddedOptions): Promise<EmbeddedServers> {
  const home = openHome(options.home);
  const until = Date.now() + STARTING_LIMIT_MS;
  let told = '';
  for (;;) {
    const lock = await takeLock(home, { ...greeting(), status: 'starting' });
    if (lock !== null) return ownOrRelease(lock, { ...options, home });
    const holder = await askHolder(home);
    if (holder === 'silent') throw heldByOther(home);
    if (holder !== 'free' && holder.status === 'running') return join(home, options, holder);
    const state = holder === 'free' ? '' : `waiting for Pawl process ${holder.pid}, which is ${holder.status}`;
    if (state !== '' && state !== told) options.onProgress(state);
    told = state;
    if (Date.now() > until) throw new SetupError(`${home} stays held (${state}): end that process and start again.`);
    await sleep(100);
  }
}

/** Who runs on this home: for a command that wants the addresses and starts nothing. Throws SetupError. */
export async function whoRuns(home: string): Promise<Holder | null> {
  const holder = await askHolder(openHome(home));
  if (holder === 'silent') throw heldByOther(home);
  return typeof holder === 'string' ? null : holder;
}

async function ownOrRelease(lock: HomeLock, options: EmbeddedOptions): Promise<EmbeddedServers> {
  try {
    return await own(lock, options);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

function join(home: string, options: EmbeddedOptions, holder: Extract<Holder, { status: 'running' }>): EmbeddedServers {
  options.onProgress(`joining Pawl ${holder.version}, process ${holder.pid}`);
  return {
    temporalAddress: holder.temporalAddress,
    temporalUiUrl: holder.temporalUiUrl,
    databaseUrl: joinedDatabase(home, options, holder.socketDir, holder.pid),
    owner: false,
    apiUrl: holder.apiUrl,
    publish: () => {},
    pids: () => ({}),
    exited: new Promise(() => {}),
    stop: async () => {},
  };
}

/** The password does not go over the socket: the joiner reads it where only the owner of the home can. */
function joinedDatabase(home: string, options: EmbeddedOptions, socketDir: string | null, pid: number): string {
  if (socketDir === null) {
    if (options.databaseUrl !== undefined) return options.databaseUrl;
    throw new SetupError(
      `Pawl process ${pid} runs here with a DATABASE_URL of its own: set the same DATABASE_URL, or end it.`,
    );
  }
  const password = readSecret(home, PASSWORD);
  if (password === null)
    throw new SetupError(`${home}/secrets is gone while Pawl process ${pid} runs: end it and bring the file back.`);
  return databaseUrl(socketDir, 'pawl', password);
}

function heldByOther(home: string): SetupError {
  const who = describeHolder(lockAddress(home));
  return new SetupError(`${home} is held by ${who}, which does not answer as Pawl within 2 s: end it and start again.`);
}
