import { sql } from 'drizzle-orm';
import type { Db } from '../activities/store/database.ts';
import { isOfAgent } from '../activities/store/sub-agents.ts';
import type { RecordedEvent } from '../workflows/core/journal.ts';

/** A piece of text that is being written. A dropped attempt takes its pieces with it (`attempt.discarded`). */
export interface TextDelta {
  readonly type: 'delta';
  readonly step: number;
  readonly attempt: string;
  /** Counts the pieces of one attempt; one that resumes in the middle of a message gets them from 0 again. */
  readonly n: number;
  readonly channel: 'text' | 'reasoning';
  readonly chunk: string;
}

interface LiveAttempt {
  readonly step: number;
  /** Number of the last piece that was read; -1 for none. */
  n: number;
}

const AT_ONCE = 500;

/**
 * The attempts that write now, each with its own position: pieces of two attempts may be committed out of the
 * order of their ids. An attempt is forgotten with its stream's end, so no piece comes after its message.
 */
export class LiveAttempts {
  readonly #attempts = new Map<string, LiveAttempt>();

  constructor(known: readonly { readonly attempt: string; readonly step: number }[]) {
    for (const { attempt, step } of known) this.#attempts.set(attempt, { step, n: -1 });
  }

  take({ event, turn }: RecordedEvent): void {
    // What a sub-agent writes is read by whoever started it.
    if (turn !== null && isOfAgent(turn)) return;
    switch (event.kind) {
      case 'sample.started':
        if (!this.#attempts.has(event.attempt)) this.#attempts.set(event.attempt, { step: event.step, n: -1 });
        break;
      case 'stream.ended':
      case 'attempt.discarded':
        this.#attempts.delete(event.attempt);
        break;
      default:
        break;
    }
  }

  /** What was written since the last read, in the order of each attempt. */
  async read(db: Db): Promise<TextDelta[]> {
    if (this.#attempts.size === 0) return [];
    const positions = [...this.#attempts].map(([attempt, { n }]) => ({ attempt, n }));
    const { rows } = await db.execute<Omit<TextDelta, 'type'> & Record<string, unknown>>(sql`
      select d.step, d.attempt, d.n, d.channel, d.chunk
      from jsonb_to_recordset(${JSON.stringify(positions)}::jsonb) as seen (attempt text, n int)
      join pawl.delta d on d.attempt = seen.attempt and d.n > seen.n
      order by d.attempt, d.n limit ${AT_ONCE}`);
    for (const { attempt, n } of rows) {
      const live = this.#attempts.get(attempt);
      if (live) live.n = n;
    }
    return rows.map(({ step, attempt, n, channel, chunk }) => ({ type: 'delta', step, attempt, n, channel, chunk }));
  }
}
