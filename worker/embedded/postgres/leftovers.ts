import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startedAt } from '../../../activities/process/identity.ts';

const WAIT_MS = 15_000;

/**
 * Waits until no process works in the data folder: the children of a killed postmaster end by themselves, a moment
 * later, and a new one refuses to start before. Then removes a lock file whose number now belongs to somebody else
 * (in a container numbers come again), which PostgreSQL would take for a running server.
 */
export async function waitForEmpty(dataDir: string): Promise<void> {
  if (process.platform !== 'linux') return;
  const until = Date.now() + WAIT_MS;
  for (let left = processesIn(dataDir); left.length > 0; left = processesIn(dataDir)) {
    if (Date.now() > until) left.forEach(kill);
    await sleep(25);
  }
  const lock = join(dataDir, 'postmaster.pid');
  if (!existsSync(lock)) return;
  const pid = Number(readFileSync(lock, 'utf8').split('\n')[0]);
  if (startedAt(pid) !== null) rmSync(lock, { force: true });
}

/** PostgreSQL's processes all have the data folder as their working folder. */
function processesIn(dataDir: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => workingFolder(pid) === dataDir && startedAt(pid) !== null);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it has just ended
  }
}

function workingFolder(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return null;
  }
}
