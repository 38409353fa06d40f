// @ts-check
// Runs one command in a process group of its own and outlives its owner just long enough to end it:
// when standard input closes (the owner stopped, or was killed), the whole group is ended.
// Plain JavaScript, since it must start fast and without a loader.
//
// argv[2]: JSON { command, args, cwd, env, uid?, gid?, stopSignal, graceMs, reapGroup, hasInput }
// fd 3: JSON lines { pid } once it runs, { error } if it could not, { code, signal } when it ended.
// fd 4, if hasInput: the command's standard input.
import { spawn } from 'node:child_process';
import { closeSync, writeSync } from 'node:fs';

const spec = JSON.parse(process.argv[2] ?? '{}');
for (const name of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) process.on(name, () => {});

/** @param {unknown} fact */
function tell(fact) {
  try {
    writeSync(3, `${JSON.stringify(fact)}\n`);
  } catch {
    // nobody listens any more
  }
}

const child = spawn(spec.command, spec.args, {
  cwd: spec.cwd,
  env: spec.env,
  detached: true,
  stdio: [spec.hasInput ? 4 : 'ignore', 'inherit', 'inherit'],
  ...(spec.uid === undefined ? {} : { uid: spec.uid, gid: spec.gid }),
});

// Ours would keep the pipe open after the command is gone.
if (spec.hasInput) closeSync(4);

/** @param {NodeJS.Signals} signal */
function signalGroup(signal) {
  try {
    if (child.pid) process.kill(-child.pid, signal);
  } catch {
    // the group is gone
  }
}

let stopping = false;
function stop() {
  if (stopping) return;
  stopping = true;
  signalGroup(spec.stopSignal);
  setTimeout(() => signalGroup('SIGKILL'), spec.graceMs);
}

child.on('spawn', () => tell({ pid: child.pid }));
child.on('error', (error) => {
  tell({ error: error.message });
  process.exit(127);
});
child.on('exit', (code, signal) => {
  if (spec.reapGroup) signalGroup('SIGKILL');
  tell({ code, signal });
  process.exit(0);
});

process.stdin.on('end', stop);
process.stdin.on('error', stop);
process.stdin.resume();
