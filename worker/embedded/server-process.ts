import { setTimeout as sleep } from 'node:timers/promises';
import type { ProcessIdentity } from '../../activities/process/identity.ts';
import type { Exit, Supervised } from '../../activities/process/supervise.ts';
import { SetupError } from '../setup-error.ts';
import { endProcess } from './end-process.ts';

export type ServerName = 'temporal' | 'postgres';

export interface ServerSpec {
  readonly name: ServerName;
  launch(): Promise<Supervised>;
  /** Resolves when this very process answers requests; stops trying when the signal is aborted. */
  ready(signal: AbortSignal, pid: number): Promise<void>;
  readonly readyWithinMs: number;
  readonly stopSignal: NodeJS.Signals;
  lastLogLine(): string;
  started(identity: ProcessIdentity): void;
  onProgress(line: string): void;
}

const RESTARTS = 5;
const RESTARTS_WINDOW_MS = 60_000;
const LEFTOVER_GRACE_MS = 5_000;

/**
 * One server that is kept running on the same files and address.
 * running → (it dies) → restarting → running, at most RESTARTS times in the window, then failed;
 * stop() ends it from any state. The first start is not repeated: its failure is thrown.
 */
export class ServerProcess {
  readonly failed: Promise<ServerName>;
  readonly #spec: ServerSpec;
  readonly #watching: Promise<void>;
  readonly #restarts: number[] = [];
  #current: Supervised;
  #stopping = false;

  static async start(spec: ServerSpec): Promise<ServerProcess> {
    return new ServerProcess(spec, await bring(spec));
  }

  private constructor(spec: ServerSpec, first: Supervised) {
    this.#spec = spec;
    this.#current = first;
    const { promise, resolve } = withResolver<ServerName>();
    this.failed = promise;
    this.#watching = this.#watch(resolve);
  }

  /** The process that runs now, or ran last. */
  get pid(): number {
    return this.#current.identity.pid;
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    this.#current.stop();
    await this.#watching;
  }

  async #watch(fail: (name: ServerName) => void): Promise<void> {
    for (;;) {
      const exit = await this.#current.exited;
      // The supervisor may be what died: then the server is still there.
      await endProcess(this.#current.identity, this.#spec.stopSignal, LEFTOVER_GRACE_MS);
      if (this.#stopping) return;
      this.#spec.onProgress(`${this.#spec.name} ended (${describe(exit)}): starting it again`);
      if (!(await this.#restart())) {
        if (!this.#stopping) fail(this.#spec.name);
        return;
      }
    }
  }

  async #restart(): Promise<boolean> {
    while (!this.#stopping && this.#mayRestart()) {
      try {
        this.#current = await bring(this.#spec);
        this.#spec.onProgress(`${this.#spec.name} runs again (process ${this.pid})`);
        if (this.#stopping) this.#current.stop();
        return true;
      } catch (error) {
        this.#spec.onProgress((error as Error).message);
        await sleep(200 * this.#restarts.length);
      }
    }
    return false;
  }

  #mayRestart(): boolean {
    const now = Date.now();
    this.#restarts.push(now);
    return this.#restarts.filter((at) => at > now - RESTARTS_WINDOW_MS).length <= RESTARTS;
  }
}

/** Launches and waits until it answers; a server that does not is ended before the error is thrown. */
async function bring(spec: ServerSpec): Promise<Supervised> {
  const server = await spec.launch().catch((error: Error) => {
    throw new SetupError(`${spec.name} could not be started: ${error.message}`);
  });
  spec.started(server.identity);
  const giveUp = new AbortController();
  const timer = setTimeout(() => giveUp.abort(), spec.readyWithinMs);
  try {
    await Promise.race([
      spec.ready(giveUp.signal, server.identity.pid),
      server.exited.then((exit) => {
        throw new SetupError(`${spec.name} could not start (${describe(exit)}): ${spec.lastLogLine()}`);
      }),
    ]);
    return server;
  } catch (error) {
    const late = giveUp.signal.aborted;
    giveUp.abort();
    server.stop();
    await server.exited;
    if (!late) throw error;
    throw new SetupError(`${spec.name} did not answer within ${spec.readyWithinMs / 1000} s: ${spec.lastLogLine()}`);
  } finally {
    clearTimeout(timer);
  }
}

function describe(exit: Exit): string {
  return exit.signal ?? `exit code ${exit.code}`;
}

function withResolver<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
