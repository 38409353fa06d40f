import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/** Every process of a call has this variable with the call's key, also one that left its group and session. */
export const CALL_VARIABLE = 'PAWL_CALL';

const ROUNDS = 40;
const BETWEEN_ROUNDS_MS = 10;

/**
 * Ends every process of a call that its group did not hold, and returns how many there were.
 * It looks again until none is left, since one may start another meanwhile. Linux only; elsewhere it finds none.
 */
export async function reap(key: string): Promise<number> {
  const ended = new Set<number>();
  for (let round = 0; round < ROUNDS; round++) {
    const found = await processesOf(key);
    if (found.length === 0) break;
    for (const pid of found) {
      ended.add(pid);
      kill(pid);
    }
    await sleep(BETWEEN_ROUNDS_MS);
  }
  return ended.size;
}

/** Process ids of a call, by the environment they were started with. A dead one has none any more. */
export async function processesOf(key: string): Promise<number[]> {
  if (process.platform !== 'linux') return [];
  const wanted = `\0${CALL_VARIABLE}=${key}\0`;
  const found: number[] = [];
  for (const name of await readdir('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid <= 1 || pid === process.pid) continue;
    // Another user's process, or one that is gone: not ours to end.
    const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '');
    if (`\0${environment}\0`.includes(wanted)) found.push(pid);
  }
  return found;
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it is gone
  }
}
