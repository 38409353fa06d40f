import { randomUUID } from 'node:crypto';
import { POLICY } from '../../workflows/core/policy.ts';
import { type Supervised, supervise } from '../process/supervise.ts';
import { reap } from '../tools/reap.ts';
import { readStreams, stopWhen } from '../tools/run-process.ts';
import { toolEnvironment } from '../tools/tool-environment.ts';

export interface HookCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** Folder of the config, never the workspace: what an agent writes must not become a hook. */
  readonly cwd: string;
  /** JSON for its standard input. */
  readonly input: string;
  readonly timeLimitMs: number;
}

export type HookRan =
  | { readonly kind: 'exited'; readonly code: number; readonly stdout: string; readonly stderr: string }
  /** `why` is a fixed text, never content. */
  | { readonly kind: 'failed'; readonly why: string };

/** Runs the command of a hook to its end, in bounded time and memory, and leaves no process of it behind. */
export async function runHookCommand(hook: HookCommand, signal: AbortSignal): Promise<HookRan> {
  const key = `hook-${randomUUID()}`;
  const starting = supervise({
    command: hook.command,
    args: hook.args,
    cwd: hook.cwd,
    env: await toolEnvironment({ workspace: hook.cwd, idempotencyKey: key }),
    stopSignal: 'SIGKILL',
    graceMs: 0,
    reapGroup: true,
    output: 'pipe',
    input: hook.input,
  });
  const stopper = stopWhen(starting, signal, hook.timeLimitMs, 0);
  try {
    const running = await Promise.race([starting, stopper.gaveUp]).catch(() => null);
    if (running !== null && 'identity' in running) return await follow(running, stopper, key, hook.timeLimitMs);
    await reap(key);
    return { kind: 'failed', why: 'could not be started' };
  } finally {
    stopper.clear();
  }
}

async function follow(
  running: Supervised,
  stopper: ReturnType<typeof stopWhen>,
  key: string,
  timeLimitMs: number,
): Promise<HookRan> {
  const { stdout, stderr } = running;
  if (stdout === null || stderr === null) return { kind: 'failed', why: 'could not be read' };
  const out = new Bounded();
  const err = new Bounded();
  const reading = [
    readStreams([stdout], (chunk) => {
      if (!out.take(chunk)) stopper.stop('output');
    }),
    // Of what it complains of, the beginning is enough.
    readStreams([stderr], (chunk) => void err.take(chunk)),
  ];
  try {
    const exit = await Promise.race([running.exited, stopper.gaveUp]);
    stopper.clear();
    await reap(key);
    await Promise.all(reading.map((stream) => stream.drained()));
    switch (stopper.why()) {
      case 'timeout':
        return { kind: 'failed', why: `took longer than ${timeLimitMs} ms` };
      case 'aborted':
        return { kind: 'failed', why: 'cut by a cancel' };
      case 'output':
        return { kind: 'failed', why: `printed more than ${POLICY.hooks.outputBytes} bytes` };
      case null:
        if (exit.code === null) return { kind: 'failed', why: `ended by ${exit.signal ?? 'a signal'}` };
        return { kind: 'exited', code: exit.code, stdout: out.text(), stderr: err.text() };
    }
  } finally {
    stdout.destroy();
    stderr.destroy();
  }
}

/** The first bytes of a stream. */
class Bounded {
  readonly #chunks: Buffer[] = [];
  #left: number = POLICY.hooks.outputBytes;

  /** Whether there was room for all of it. */
  take(chunk: Buffer): boolean {
    if (this.#left > 0) this.#chunks.push(chunk.subarray(0, this.#left));
    this.#left -= chunk.length;
    return this.#left >= 0;
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }
}
