import { setTimeout as sleep } from 'node:timers/promises';
import type { House } from '../../worker/house.ts';
import { type RunningWorker, startWorker } from '../../worker/start-worker.ts';
import type { Output } from './output.ts';

const AGAIN_AFTER_MS = 1_000;

/** A worker that is started again whenever it stops by itself, as after an outage of the engine. */
export async function keepWorker(house: House, output: Output): Promise<RunningWorker> {
  let stopping = false;
  let restarting: Promise<void> | null = null;
  const onFault = () => {
    if (stopping || restarting) return;
    output.note('The worker stopped; it is started again.');
    restarting = restart().finally(() => {
      restarting = null;
    });
  };
  let current: RunningWorker | null = await startWorker(house, { onFault });

  async function restart(): Promise<void> {
    await current?.stop().catch(() => {});
    current = null;
    while (!stopping && !current) {
      await sleep(AGAIN_AFTER_MS);
      current = await startWorker(house, { onFault }).catch(() => null);
    }
  }

  return {
    async stop() {
      stopping = true;
      await restarting;
      await current?.stop();
    },
  };
}
