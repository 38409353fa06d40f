import { setTimeout as sleep } from 'node:timers/promises';
import { isGone, type HostIdentity, type ProcessIdentity } from '../process/identity.ts';
import { type EffectRow, leaseRemainingMs } from '../store/ledger.ts';
import { reap } from '../tools/reap.ts';
import type { ToolAttempt } from './tool-attempt.ts';

const LOOK_EVERY_MS = 100;

/**
 * Waits until the attempt that holds an effect can't act any more: its worker and its processes are proved
 * dead on this machine, or its lease is over.
 */
export async function awaitDeath(at: ToolAttempt, row: EffectRow): Promise<void> {
  const { database, host, process: own } = at.deps;
  for (;;) {
    if (isHere(row, host) && workerIsGone(row, own)) return await endProcesses(row);
    if ((await leaseRemainingMs(database.db, row.key)) === 0) return;
    await sleep(LOOK_EVERY_MS);
  }
}

function isHere(row: EffectRow, host: HostIdentity): boolean {
  return row.host === host.host && row.boot === host.boot;
}

/** An earlier attempt of this very process was waited for before. */
function workerIsGone(row: EffectRow, own: ProcessIdentity): boolean {
  if (row.pid === null) return true;
  if (row.pid === own.pid && row.pidStarted === own.started) return true;
  return isGone({ pid: row.pid, started: row.pidStarted ?? '' });
}

/** The supervisor ends its group when its worker dies; whatever it could not end is ended here. */
async function endProcesses(row: EffectRow): Promise<void> {
  if (row.group && !isGone(row.group)) {
    try {
      process.kill(-row.group.pid, 'SIGKILL');
    } catch {
      // it went by itself
    }
    while (!isGone(row.group)) await sleep(LOOK_EVERY_MS);
  }
  await reap(row.key);
}
