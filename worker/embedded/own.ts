import type { EmbeddedOptions, EmbeddedServers } from './contract.ts';
import type { HolderFacts, HomeLock } from './home-lock.ts';
import { startPostgres } from './postgres/server.ts';
import type { ServerName, ServerProcess } from './server-process.ts';
import { endLeftovers } from './servers-file.ts';
import { startTemporal } from './temporal/server.ts';
import { greeting } from './version.ts';

interface Brought<T> {
  readonly facts: T;
  /** Null: it was given to us. */
  readonly server: ServerProcess | null;
}

/** Brings what was not given, under the lock. If one server can't start, the other is stopped again. */
export async function own(lock: HomeLock, options: EmbeddedOptions): Promise<EmbeddedServers> {
  await endLeftovers(options.home, options.onProgress);
  const [temporal, database] = await bothOrNone(bringTemporal(options), bringDatabase(options));
  const servers = [temporal.server, database.server].filter((server) => server !== null);
  let facts: HolderFacts = { ...temporal.facts, socketDir: database.facts.socketDir, apiUrl: null };
  lock.answer({ ...greeting(), status: 'running', ...facts });

  return {
    ...temporal.facts,
    databaseUrl: database.facts.databaseUrl,
    owner: true,
    get apiUrl() {
      return facts.apiUrl;
    },
    publish: (more) => {
      facts = { ...facts, ...more };
      lock.answer({ ...greeting(), status: 'running', ...facts });
    },
    pids: () => pids(temporal.server, database.server),
    exited: servers.length > 0 ? Promise.race(servers.map((server) => server.failed)) : new Promise(() => {}),
    stop: async () => {
      lock.answer({ ...greeting(), status: 'stopping' });
      await Promise.all(servers.map((server) => server.stop()));
      await lock.release();
    },
  };
}

async function bringTemporal(
  options: EmbeddedOptions,
): Promise<Brought<Pick<HolderFacts, 'temporalAddress' | 'temporalUiUrl'>>> {
  if (options.temporalAddress !== undefined) {
    return { facts: { temporalAddress: options.temporalAddress, temporalUiUrl: null }, server: null };
  }
  const { home, ports = {}, onProgress } = options;
  const { server, address, uiUrl } = await startTemporal({ home, ports, onProgress });
  onProgress(`Temporal runs at ${address}`);
  return { facts: { temporalAddress: address, temporalUiUrl: uiUrl }, server };
}

async function bringDatabase(
  options: EmbeddedOptions,
): Promise<Brought<{ databaseUrl: string; socketDir: string | null }>> {
  if (options.databaseUrl !== undefined)
    return { facts: { databaseUrl: options.databaseUrl, socketDir: null }, server: null };
  const { server, databaseUrl, socketDir } = await startPostgres(options.home, options.onProgress);
  options.onProgress(`PostgreSQL runs in ${socketDir}`);
  return { facts: { databaseUrl, socketDir }, server };
}

async function bothOrNone<A extends Brought<unknown>, B extends Brought<unknown>>(
  a: Promise<A>,
  b: Promise<B>,
): Promise<[A, B]> {
  try {
    return await Promise.all([a, b]);
  } catch (error) {
    for (const outcome of await Promise.allSettled([a, b])) {
      if (outcome.status === 'fulfilled') await outcome.value.server?.stop();
    }
    throw error;
  }
}

function pids(temporal: ServerProcess | null, postgres: ServerProcess | null): Partial<Record<ServerName, number>> {
  return {
    ...(temporal === null ? {} : { temporal: temporal.pid }),
    ...(postgres === null ? {} : { postgres: postgres.pid }),
  };
}
