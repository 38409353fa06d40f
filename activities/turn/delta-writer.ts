import { POLICY } from '../../workflows/core/policy.ts';
import type { Db } from '../store/database.ts';
import { storable } from '../store/hash.ts';
import type { StreamNotifier } from '../store/notify.ts';
import { type DeltaChunk, dropDeltas, writeDeltas } from '../store/samples.ts';

interface Where {
  readonly stream: string;
  readonly turn: string;
  readonly step: number;
  readonly attempt: string;
}

/** Batches streamed text into the delta table: every 50 ms or 4 KB, one write at a time, in order. */
export class DeltaWriter {
  readonly #db: Db;
  readonly #notifier: StreamNotifier;
  readonly #at: Where;
  #waiting: { channel: DeltaChunk['channel']; text: string }[] = [];
  #bytes = 0;
  #n = 0;
  #timer: NodeJS.Timeout | null = null;
  #writing: Promise<void> = Promise.resolve();
  #wrote = false;

  constructor(db: Db, notifier: StreamNotifier, at: Where) {
    this.#db = db;
    this.#notifier = notifier;
    this.#at = at;
  }

  add(channel: DeltaChunk['channel'], text: string): void {
    const last = this.#waiting[this.#waiting.length - 1];
    if (last?.channel === channel) last.text += text;
    else this.#waiting.push({ channel, text });
    this.#bytes += text.length;
    if (this.#bytes >= POLICY.delta.flushBytes) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), POLICY.delta.flushMs);
  }

  /**
   * Waits for what is on its way; what was not yet due is superseded by the message and dropped.
   * `late`: something still is, and will come behind the message.
   */
  async flushed(limitMs: number): Promise<'nothing' | 'written' | 'late'> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    if (!this.#wrote) return 'nothing';
    this.#flush();
    let limit: NodeJS.Timeout | undefined;
    const late = new Promise<'late'>((resolve) => {
      limit = setTimeout(() => resolve('late'), limitMs);
    });
    const shown = await Promise.race([this.#writing.then(() => 'written' as const), late]);
    clearTimeout(limit);
    return shown;
  }

  /** Takes away what is still on its way, once it is there: its message is committed. */
  async dropped(): Promise<void> {
    await this.#writing;
    await dropDeltas(this.#db, this.#at.attempt).catch(() => {});
  }

  #flush(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    const chunks = this.#waiting.map(({ channel, text }) => ({ n: this.#n++, channel, chunk: storable(text) }));
    this.#waiting = [];
    this.#bytes = 0;
    if (chunks.length === 0) return;
    this.#wrote = true;
    this.#writing = this.#writing
      .then(() => writeDeltas(this.#db, this.#at, chunks))
      .then(() => this.#notifier.moved(this.#at.stream))
      // Deltas are a courtesy: the message itself follows in its own commit.
      .catch(() => {});
  }
}
