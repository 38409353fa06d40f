import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Command, Exit, Supervised } from '../process/supervise.ts';
import { Refused } from './answer.ts';
import { Capture, type Captured, STOP_BYTES } from './capture.ts';
import type { ToolContext } from './define-tool.ts';
import { CALL_VARIABLE, reap } from './reap.ts';
import { toolEnvironment } from './tool-environment.ts';

const DRAIN = { quietMs: 200, longestMs: 2_000, lookEveryMs: 20 } as const;
/** Past stop signal, grace and this, we end the group ourselves: the supervisor may be stopped too. */
const SUPERVISOR_MARGIN_MS = 2_000;

export interface ToolProcess {
  readonly command: string;
  readonly args: readonly string[];
  readonly timeLimitMs: number;
  /** Ask it to stop first; without this it is killed at once. */
  readonly gentle: boolean;
  /** Where it runs and its whole environment; without this, the workspace and the one that tools have. */
  readonly at?: { readonly cwd: string; readonly env: Readonly<Record<string, string>> };
}

export type Stopped = 'timeout' | 'aborted' | 'output';

export interface Finished {
  readonly exit: Exit;
  /** Why we stopped it, if we did. */
  readonly stopped: Stopped | null;
  readonly captured: Captured;
}

/** Runs one command to its end, in bounded time and memory, and leaves no process of it behind. */
export async function runProcess(wanted: ToolProcess, context: ToolContext): Promise<Finished> {
  context.signal.throwIfAborted();
  const command = await commandFor(wanted, context);
  const starting = context.spawn(command);
  const stopper = stopWhen(starting, context.signal, wanted.timeLimitMs, command.graceMs);
  try {
    const running = await Promise.race([starting, stopper.gaveUp]).catch(() => null);
    if (running !== null && 'identity' in running) return await follow(running, stopper, context);
    await reap(context.idempotencyKey);
    throw new Refused(
      'The command could not be started, or was lost while it started. Check what it did before you run it again.',
      'no_start',
    );
  } finally {
    stopper.clear();
  }
}

async function follow(running: Supervised, stopper: Stopper, context: ToolContext): Promise<Finished> {
  const streams = [running.stdout, running.stderr].filter((stream) => stream !== null);
  const capture = new Capture(context.resultChars);
  // Before it is cut: half a secret would not be known for one afterwards.
  const masks = new Map(streams.map((stream) => [stream, context.maskStream?.()]));
  const reading = readStreams(streams, (chunk, stream) => {
    if (capture.size <= STOP_BYTES) capture.write(masks.get(stream)?.write(chunk) ?? chunk);
    else stopper.stop('output');
  });
  try {
    const exit = await Promise.race([running.exited, stopper.gaveUp]);
    stopper.clear();
    await reap(context.idempotencyKey);
    await reading.drained();
    for (const mask of masks.values()) if (mask) capture.write(mask.end());
    return { exit, stopped: stopper.why(), captured: capture.finish() };
  } finally {
    for (const stream of streams) stream.destroy();
  }
}

async function commandFor(wanted: ToolProcess, context: ToolContext): Promise<Command> {
  return {
    command: wanted.command,
    args: wanted.args,
    cwd: wanted.at?.cwd ?? context.workspace,
    env: wanted.at ? { ...wanted.at.env, [CALL_VARIABLE]: context.idempotencyKey } : await toolEnvironment(context),
    stopSignal: wanted.gentle ? 'SIGTERM' : 'SIGKILL',
    graceMs: POLICY.tools.killAfterMs,
    reapGroup: true,
    output: 'pipe',
  };
}

type Stopper = ReturnType<typeof stopWhen>;

/** Stops a process on an abort, at its time limit, or when told to. The first reason counts. */
export function stopWhen(starting: Promise<Supervised>, signal: AbortSignal, timeLimitMs: number, graceMs: number) {
  const withProcess = (act: (running: Supervised) => void) => void starting.then(act, () => {});
  let why: Stopped | null = null;
  let lastResort: NodeJS.Timeout | undefined;
  const { promise: gaveUp, resolve: giveUp } = withResolvers<Exit>();
  const stop = (reason: Stopped) => {
    if (why !== null) return;
    why = reason;
    withProcess((running) => running.stop());
    lastResort = setTimeout(() => {
      withProcess((running) => killGroup(running.identity.pid));
      giveUp({ code: null, signal: 'SIGKILL' });
    }, graceMs + SUPERVISOR_MARGIN_MS);
  };
  const onAbort = () => stop('aborted');
  const timer = setTimeout(() => stop('timeout'), timeLimitMs);
  signal.addEventListener('abort', onAbort);
  if (signal.aborted) onAbort();
  const clear = () => {
    clearTimeout(timer);
    clearTimeout(lastResort);
    signal.removeEventListener('abort', onAbort);
  };
  return { stop, gaveUp, clear, why: () => why };
}

/** Reads streams as they come. `drained` waits for their end, or until a process that kept them open is quiet. */
export function readStreams(streams: readonly Readable[], take: (chunk: Buffer, from: Readable) => void) {
  let open = streams.length;
  let lastAt = 0;
  for (const stream of streams) {
    stream.on('data', (chunk: Buffer) => {
      lastAt = Date.now();
      take(chunk, stream);
    });
    stream.on('error', () => {});
    stream.once('close', () => open--);
  }
  const drained = async () => {
    const from = Date.now();
    while (open > 0 && Date.now() - from < DRAIN.longestMs && Date.now() - Math.max(from, lastAt) < DRAIN.quietMs) {
      await sleep(DRAIN.lookEveryMs);
    }
  };
  return { drained };
}

function withResolvers<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // it is gone
  }
}
