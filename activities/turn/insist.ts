import { setTimeout as sleep } from 'node:timers/promises';
import { POLICY } from '../../workflows/core/policy.ts';
import { isStoreAway } from '../store/errors.ts';

/**
 * Sends a write that may be repeated again while the store is away. What the world has done is known here
 * only: an attempt that gave up would make a known outcome unknown, or a reply that is paid for be asked again.
 */
export async function insist<T>(write: () => Promise<T>): Promise<T> {
  const giveUpAt = Date.now() + POLICY.store.insistMs;
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (!isStoreAway(error) || Date.now() > giveUpAt) throw error;
      await sleep(POLICY.store.againAfterMs);
    }
  }
}
