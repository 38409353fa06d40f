// A worker as a process of its own, to be killed: `worker-process <ProcessOrder as JSON>`, forked.
import { openHouse } from '../../worker/house.ts';
import { startEmbedded } from '../../worker/embedded/start.ts';
import { startWorker } from '../../worker/start-worker.ts';
import { crashConfig, type ProcessOrder, type ProcessReady } from './crash-config.ts';
import { dieAt } from './kill-at.ts';

const order = JSON.parse(process.argv[2] ?? '') as ProcessOrder;
process.on('disconnect', () => process.exit(1));

const config = crashConfig(order);
const house = await openHouse(config, { embedded: true, onProgress: () => {} });
if (order.dieAt) dieAt(order.dieAt);
await startWorker(house, { onFault: (error) => console.error(error) });

const joined = order.servers ? null : await startEmbedded({ home: config.home, onProgress: () => {} });
process.send?.({
  temporalAddress: house.addresses.temporal,
  databaseUrl: joined?.databaseUrl ?? null,
  pids: house.pids(),
} satisfies ProcessReady);
