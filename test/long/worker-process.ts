// A worker of its own, so that its memory is nobody else's: `worker-process <LongOrder as JSON>`, forked.
import { openHouse } from '../../worker/house.ts';
import { startWorker } from '../../worker/start-worker.ts';
import { type LongOrder, longConfig } from './long-config.ts';

const order = JSON.parse(process.argv[2] ?? '') as LongOrder;
process.on('disconnect', () => process.exit(0));

const house = await openHouse(longConfig(order), { embedded: false, onProgress: () => {} });
await startWorker(house, { onFault: (error) => console.error(error) });

/** What is left when garbage is collected, in bytes: whether anything grows, whatever the collector's mood. */
process.on('message', () => {
  globalThis.gc?.();
  process.send?.({ rss: process.memoryUsage.rss() });
});
process.send?.('ready');
