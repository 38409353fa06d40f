// A worker for many jobs, to be killed: `crowd-process <CrowdOrder as JSON>`, forked. It begins when it is told where
// each of them stops, so that the next one can be there before this one dies.
import { openHouse } from '../../worker/house.ts';
import { startWorker } from '../../worker/start-worker.ts';
import { crowdConfig, type CrowdOrder } from './crowd-config.ts';
import { type Place, standAt } from './kill-at.ts';

const order = JSON.parse(process.argv[2] ?? '') as CrowdOrder;
process.on('disconnect', () => process.exit(1));

const house = await openHouse(crowdConfig(order), { embedded: false, onProgress: () => {} });

async function begin(places: readonly Place[]): Promise<void> {
  // What stands holds its connection for good.
  house.database.pool.options.max += places.length;
  standAt(places, (place) => process.send?.(place));
  await startWorker(house, { onFault: (error) => console.error(error) });
  process.send?.('works');
}

process.once('message', (places: readonly Place[]) => void begin(places));
process.send?.('ready');
