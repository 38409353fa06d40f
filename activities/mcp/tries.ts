import { setTimeout as sleep } from 'node:timers/promises';
import { storable } from '../store/hash.ts';
import { firstChars } from '../tools/text.ts';
import { MCP, Unusable } from './servers.ts';

const WHY_CHARS = 1_000;
const MOST = MCP.retryDelaysMs.length + 1;

/** How often a server has failed in a row, and how long to wait before the next try. */
export class Tries {
  #failures = 0;
  #why: string | null = null;
  #wake = new AbortController();

  get givenUp(): boolean {
    return this.#failures >= MOST;
  }

  /** What the last failure said. */
  get why(): string | null {
    return this.#why;
  }

  failed(error: unknown): void {
    this.#failures = error instanceof Unusable ? MOST : this.#failures + 1;
    this.#why = firstChars(storable(error instanceof Error ? error.message : 'unknown fault'), WHY_CHARS);
  }

  /** The server was of use: it is worth being started again. */
  worked(): void {
    this.#failures = 0;
  }

  /** A turn begins: whoever was given up gets another chance, whoever waits need not. */
  renew(): void {
    if (this.givenUp) this.#failures = 0;
    this.wake();
  }

  wake(): void {
    this.#wake.abort();
  }

  /** The wait before the next try; none before the first. */
  async pause(): Promise<void> {
    const ms = MCP.retryDelaysMs[this.#failures - 1];
    if (ms === undefined) return;
    this.#wake = new AbortController();
    await sleep(ms, undefined, { signal: this.#wake.signal, ref: false }).catch(() => {});
  }
}
