import { Client, Connection } from '@temporalio/client';
import pg from 'pg';
import { type Database, openDatabase } from '../activities/store/database.ts';
import { migrateDatabase } from '../activities/store/migrate.ts';
import { StreamListener } from '../activities/store/notify.ts';
import { type Catalogue, createCatalogue } from './catalogue.ts';
import type { Config } from './config/load.ts';
import type { EmbeddedServers } from './embedded/contract.ts';
import { startEmbedded, whoRuns } from './embedded/start.ts';
import { ensureSearchAttributes } from './embedded/temporal/search-attributes.ts';
import { SetupError } from './setup-error.ts';

export interface HouseOptions {
  /** Start what is not given by TEMPORAL_ADDRESS and DATABASE_URL here, or join who did. */
  readonly embedded: boolean;
  /** Only join what runs already. */
  readonly start?: boolean;
  /** Ports asked for by name; busy ones are an error. */
  readonly ports?: { readonly temporal?: number; readonly ui?: number };
  onProgress(line: string): void;
}

export interface Addresses {
  readonly temporal: string;
  readonly temporalUi: string | null;
  readonly database: 'embedded' | 'DATABASE_URL';
  /** Of the process that owns the data folder. */
  readonly api: string | null;
}

/** Both servers reached, the schema up to date: what every command but `migrate` stands on. */
export interface House {
  readonly config: Config;
  readonly database: Database;
  readonly listener: StreamListener;
  readonly temporal: Client;
  readonly taskQueue: string;
  readonly catalogue: Catalogue;
  readonly addresses: Addresses;
  /** Whether this process started the embedded servers. */
  readonly owner: boolean;
  /** Resolves when an embedded server could not be kept running. */
  readonly broken: Promise<string>;
  pids(): { readonly temporal?: number; readonly postgres?: number };
  publish(facts: { readonly apiUrl: string }): void;
  close(): Promise<void>;
}

interface Reached {
  readonly temporalAddress: string;
  readonly databaseUrl: string;
  readonly servers: EmbeddedServers | null;
}

/** Opens the house. Throws a SetupError, after undoing what it began. */
export async function openHouse(config: Config, options: HouseOptions): Promise<House> {
  const reached = await reach(config, options);
  const undo: (() => Promise<unknown>)[] = [async () => reached.servers?.stop()];
  try {
    await withoutDatabase(migrateDatabase(reached.databaseUrl));
    const database = openDatabase(reached.databaseUrl);
    undo.unshift(() => database.close());
    const connection = await connect(reached.temporalAddress);
    undo.unshift(() => connection.close());
    await ensureSearchAttributes(connection, config.temporalNamespace);
    return assemble(config, reached, database, connection);
  } catch (error) {
    for (const step of undo) await step().catch(() => {});
    throw error;
  }
}

async function reach(config: Config, options: HouseOptions): Promise<Reached> {
  const { temporalAddress, databaseUrl } = config;
  if (temporalAddress && databaseUrl) return { temporalAddress, databaseUrl, servers: null };
  if (!options.embedded) {
    throw new SetupError('Set TEMPORAL_ADDRESS and DATABASE_URL, or use `pawl up`, which brings both.');
  }
  if (options.start === false && (await whoRuns(config.home))?.status !== 'running') {
    throw new SetupError(
      `Pawl is not running on ${config.home}; start it with \`npm start\`, or set TEMPORAL_ADDRESS and DATABASE_URL.`,
    );
  }
  const servers = await startEmbedded({
    home: config.home,
    ...(temporalAddress ? { temporalAddress } : {}),
    ...(databaseUrl ? { databaseUrl } : {}),
    ...(options.ports ? { ports: options.ports } : {}),
    onProgress: options.onProgress,
  });
  return { temporalAddress: servers.temporalAddress, databaseUrl: servers.databaseUrl, servers };
}

async function withoutDatabase(migrated: Promise<void>): Promise<void> {
  try {
    await migrated;
  } catch (error) {
    const { code } = error as { code?: unknown };
    throw new SetupError(
      `PostgreSQL can't be reached or migrated (${typeof code === 'string' ? code : (error as Error).message}); check DATABASE_URL.`,
    );
  }
}

async function connect(address: string): Promise<Connection> {
  try {
    return await Connection.connect({ address, connectTimeout: 10_000 });
  } catch {
    throw new SetupError(`There is no Temporal server at ${address}; start one there, or check TEMPORAL_ADDRESS.`);
  }
}

function assemble(config: Config, reached: Reached, database: Database, connection: Connection): House {
  const { servers } = reached;
  const listener = new StreamListener(
    () => new pg.Client({ connectionString: reached.databaseUrl, application_name: 'pawl listen' }),
  );
  return {
    config,
    database,
    listener,
    temporal: new Client({ connection, namespace: config.temporalNamespace }),
    taskQueue: config.taskQueue,
    catalogue: createCatalogue(config),
    addresses: {
      temporal: reached.temporalAddress,
      temporalUi: servers?.temporalUiUrl ?? null,
      database: config.databaseUrl ? 'DATABASE_URL' : 'embedded',
      api: servers?.apiUrl ?? null,
    },
    owner: servers?.owner ?? false,
    broken: servers?.exited ?? new Promise(() => {}),
    pids: () => servers?.pids() ?? {},
    publish: (facts) => servers?.publish(facts),
    close: async () => {
      await listener.close();
      await database.close();
      await connection.close();
      await servers?.stop();
    },
  };
}
