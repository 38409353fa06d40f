import { migrateDatabase } from '../../activities/store/migrate.ts';
import { loadConfig } from '../../worker/config/load.ts';
import { requireKeysOf } from '../../worker/config/providers.ts';
import { type House, openHouse } from '../../worker/house.ts';
import { SetupError } from '../../worker/setup-error.ts';
import { createRuns } from '../runs.ts';
import { EXIT } from './exit-code.ts';
import { aborted, onInterrupt } from './interrupt.ts';
import { keepWorker } from './keep-worker.ts';
import { type ApiOptions, openApi } from './open-api.ts';
import type { Output } from './output.ts';

/** A worker alone, until it is told to go. */
export async function work(options: { readonly config?: string | undefined }, output: Output): Promise<number> {
  requireKeysOf(await loadConfig(options.config));
  return await staying(options.config, output, async (house) => {
    const worker = await keepWorker(house, output);
    output.line(`The worker takes work from ${house.addresses.temporal}.`);
    return () => worker.stop();
  });
}

/** The API alone, until it is told to go. */
export async function serve(
  options: ApiOptions & { readonly config?: string | undefined },
  output: Output,
): Promise<number> {
  return await staying(options.config, output, async (house) => {
    const server = await openApi(createRuns(house), options, output);
    output.line(`The API listens on ${server.url}.`);
    return () => server.close();
  });
}

async function staying(
  config: string | undefined,
  output: Output,
  start: (house: House) => Promise<() => Promise<void>>,
): Promise<number> {
  const interrupt = onInterrupt(() => output.note('\nStopping …'));
  const house = await openHouse(await loadConfig(config), { embedded: true, start: false, onProgress: output.note });
  try {
    const stop = await start(house);
    await aborted(interrupt.signal);
    await stop();
    return EXIT.ok;
  } finally {
    await house.close();
    interrupt.release();
  }
}

/** Brings the schema of a database of one's own up to date; the embedded one is migrated at each start. */
export async function migrate(options: { readonly config?: string | undefined }, output: Output): Promise<number> {
  const { databaseUrl } = await loadConfig(options.config);
  if (databaseUrl === null)
    throw new SetupError('Set DATABASE_URL; the embedded database is migrated by `pawl up` itself.');
  try {
    await migrateDatabase(databaseUrl);
  } catch (error) {
    const { code } = error as { code?: unknown };
    throw new SetupError(
      `The database can't be reached or migrated (${typeof code === 'string' ? code : 'unknown fault'}): check DATABASE_URL.`,
    );
  }
  output.line('The schema is up to date.');
  return EXIT.ok;
}
