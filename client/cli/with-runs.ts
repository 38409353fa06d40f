import { loadConfig } from '../../worker/config/load.ts';
import { openHouse } from '../../worker/house.ts';
import { createRuns, type Runs } from '../runs.ts';
import { type Interrupt, onInterrupt } from './interrupt.ts';

/** Runs a command against what runs already: the servers that were named, or `pawl up` on this data folder. */
export async function withRuns<T>(
  config: string | undefined,
  command: (runs: Runs, interrupt: Interrupt) => Promise<T>,
): Promise<T> {
  const house = await openHouse(await loadConfig(config), { embedded: true, start: false, onProgress: () => {} });
  const interrupt = onInterrupt(() => {});
  try {
    return await command(createRuns(house), interrupt);
  } finally {
    interrupt.release();
    await house.close();
  }
}
