/** A clock that must be fed. When it runs out it calls back once; `stop` it in any case. */
export class ProgressClock {
  #timer: NodeJS.Timeout | undefined;
  readonly #onStall: () => void;

  constructor(limitMs: number, onStall: () => void) {
    this.#onStall = onStall;
    this.feed(limitMs);
  }

  /** Starts again with this limit. */
  feed(limitMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#onStall, limitMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
