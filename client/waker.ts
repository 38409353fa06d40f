/** Waits for a wake-up or a time, whichever comes first; a wake-up that nobody awaited yet is kept. */
export class Waker {
  readonly #signal: AbortSignal | undefined;
  #woken = false;
  #resolve: (() => void) | null = null;
  readonly #onAbort = () => this.wake();

  constructor(signal?: AbortSignal) {
    this.#signal = signal;
    signal?.addEventListener('abort', this.#onAbort);
  }

  wake(): void {
    this.#woken = true;
    this.#resolve?.();
  }

  async wait(ms: number): Promise<void> {
    if (!this.#woken && !this.#signal?.aborted) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#resolve = resolve;
        timer = setTimeout(resolve, ms);
      });
      clearTimeout(timer);
      this.#resolve = null;
    }
    this.#woken = false;
  }

  close(): void {
    this.#signal?.removeEventListener('abort', this.#onAbort);
  }
}
