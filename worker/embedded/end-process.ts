import { setTimeout as sleep } from 'node:timers/promises';
import { isGone, type ProcessIdentity } from '../../activities/process/identity.ts';

/** Asks a process to end, insists after the grace time, and returns when it is gone. */
export async function endProcess(process: ProcessIdentity, signal: NodeJS.Signals, graceMs: number): Promise<void> {
  send(process, signal);
  const patience = Date.now() + graceMs;
  while (!isGone(process)) {
    if (Date.now() > patience) send(process, 'SIGKILL');
    await sleep(25);
  }
}

function send(target: ProcessIdentity, signal: NodeJS.Signals): void {
  if (isGone(target)) return;
  try {
    process.kill(target.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
