import { setTimeout as sleep } from 'node:timers/promises';

/** Waits for a condition, looking every 20 ms; fails with its name after `limitMs`. */
export async function until<T>(
  name: string,
  look: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  limitMs = 30_000,
): Promise<T> {
  const end = Date.now() + limitMs;
  for (;;) {
    const found = await look();
    if (found !== null && found !== undefined && found !== false) return found;
    if (Date.now() > end) throw new Error(`gave up waiting: ${name}`);
    await sleep(20);
  }
}
