import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/** Every process of a call has this variable with the call's key, also one that left its group and session. */
export const CALL_VARIABLE = 'PAWL_CALL';

const ROUNDS = 100;
/** One look may miss a process that hands over to a new one just then; several in a row hardly can. */
const CLEAN_ROUNDS = 3;
const AFTER_KILL_MS = 10;

/**
 * Ends every process of a call that its group did not hold, and returns how many there were.
 * It looks again until none is left, since one may start another meanwhile. Linux only; elsewhere it finds none.
 */
export async function reap(key: string): Promise<number> {
  const ended = new Set<number>();
  for (let round = 0, clean = 0; round < ROUNDS && clean < CLEAN_ROUNDS; round++) {
    const found = await processesOf(key);
    clean = found.length === 0 ? clean + 1 : 0;
    for (const pid of found) {
      ended.add(pid);
      await kill(pid);
    }
    if (found.length > 0) await sleep(AFTER_KILL_MS);
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

/** With its group, so that a child it starts at this moment goes too. Groups of a call hold nobody else. */
async function kill(pid: number): Promise<void> {
  const group = await groupOf(pid);
  for (const target of group > 1 && group !== (await groupOf(process.pid)) ? [-group, pid] : [pid]) {
    try {
      process.kill(target, 'SIGKILL');
    } catch {
      // it is gone
    }
  }
}

async function groupOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '');
  // The name in parentheses may hold anything: fields count from behind the last one.
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[2] ?? 0);
}
