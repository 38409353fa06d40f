import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { compiledProgram } from './compiled.ts';
import type { CrowdOrder } from './crowd-config.ts';
import type { Place } from './kill-at.ts';

/** The process of a crowd's worker: booted, it waits until it is told where to stop, and works. */
export class CrowdWorker {
  readonly #child: ChildProcess;
  readonly #ready: Promise<unknown>;
  readonly #died: Promise<void>;
  readonly #stand = new Set<number>();

  constructor(order: CrowdOrder) {
    this.#child = fork(join(compiledProgram(), 'test/crash/crowd-process.js'), [JSON.stringify(order)], {
      execArgv: [],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    this.#ready = once(this.#child, 'message');
    this.#died = once(this.#child, 'exit').then(() => {});
    this.#ready.catch(() => {});
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Resolves when it works; what it is to lose stops at its place. */
  async begin(places: readonly Place[]): Promise<void> {
    await this.#ready;
    const works = new Promise<void>((resolve) => {
      this.#child.on('message', (said) => {
        if (said === 'works') resolve();
        else this.#stand.add(Number(said));
      });
    });
    this.#child.send(places);
    const died = this.#died.then(() => Promise.reject(new Error('the worker died before it worked')));
    await Promise.race([works, died]);
  }

  /** Something stands at that place. */
  stands(place: number): boolean {
    return this.#stand.has(place);
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#died;
  }
}
