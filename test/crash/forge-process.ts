// A worker with the forge's tool, to be killed: `forge-process <ForgeOrder as JSON>`, forked; a message arms it.
import { openHouse } from '../../worker/house.ts';
import { startWorker } from '../../worker/start-worker.ts';
import { forgeConfig, type ForgeOrder } from './forge-config.ts';
import { type Boundary, dieAt } from './kill-at.ts';

const order = JSON.parse(process.argv[2] ?? '') as ForgeOrder;
process.on('disconnect', () => process.exit(1));

const house = await openHouse(forgeConfig(order), { embedded: false, onProgress: () => {} });
if (order.dieAt) dieAt(order.dieAt);
await startWorker(house, { onFault: (error) => console.error(error) });
process.on('message', (boundary: Boundary) => {
  dieAt(boundary);
  process.send?.('armed');
});
process.send?.('ready');
