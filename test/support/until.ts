import { setTimeout as sleep } from 'node:timers/promises';

/** Waits for a condition, looking every 10 ms at first, later every 100; fails with its name after `limitMs`. */
export async function until<T>(
  name: string,
  look: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  limitMs = 30_000,
): Promise<T> {
  const end = Date.now() + limitMs;
  for (let pauseMs = 10; ; pauseMs = Math.min(pauseMs * 1.3, 100)) {
    const found = await look();
    if (found !== null && found !== undefined && found !== false) return found;
    if (Date.now() > end) throw new Error(`gave up waiting: ${name}`);
    await sleep(pauseMs);
  }
}
