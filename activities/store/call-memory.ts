import { effectKey, storable } from './hash.ts';
import type { CallRow } from './ledger.ts';
import type { NewCall } from './turn-commit.ts';

const KEPT = 5_000;
const KEPT_CHARS = 8 * 1024 * 1024;

/**
 * Calls that this process stored or finished itself, so that it need not read back what it has just written.
 * Kept is only what nobody can change any more: a reader's call as it was asked for, for its first attempt,
 * and a result that stands.
 */
export class CallMemory {
  readonly #asked = new RecentCalls();
  readonly #finished = new RecentCalls();

  /** A reader's call that was committed with its message and goes to no gate. */
  asked(turn: string, assistant: string, step: number, call: NewCall): void {
    this.#asked.keep({
      key: call.key,
      turn,
      assistant,
      ordinal: call.ordinal,
      step,
      providerCallId: storable(call.providerCallId),
      tool: storable(call.tool),
      effect: call.effect,
      arguments: storable(call.arguments),
      argumentsHash: call.argumentsHash,
      status: null,
      result: null,
      blob: null,
      note: null,
      createdAt: new Date(),
      finishedAt: null,
    });
  }

  take(key: string): CallRow | undefined {
    return this.#asked.take(key);
  }

  /** This very result is the one that stands in the store. */
  finished(row: CallRow): void {
    this.#finished.keep(row);
  }

  /** Results of all calls of a message, or nothing if one is missing here. */
  results(assistant: string, calls: number): readonly CallRow[] | null {
    const rows: CallRow[] = [];
    for (let ordinal = 0; ordinal < calls; ordinal += 1) {
      const row = this.#finished.get(effectKey(assistant, ordinal));
      if (!row) return null;
      rows.push(row);
    }
    return rows;
  }
}

/** The newest rows, by number and by size. */
class RecentCalls {
  readonly #rows = new Map<string, CallRow>();
  #chars = 0;

  get(key: string): CallRow | undefined {
    return this.#rows.get(key);
  }

  take(key: string): CallRow | undefined {
    const row = this.#rows.get(key);
    if (row && this.#rows.delete(key)) this.#chars -= charsOf(row);
    return row;
  }

  keep(row: CallRow): void {
    this.take(row.key);
    this.#rows.set(row.key, row);
    this.#chars += charsOf(row);
    for (const key of this.#rows.keys()) {
      if (this.#rows.size <= KEPT && this.#chars <= KEPT_CHARS) break;
      this.take(key);
    }
  }
}

function charsOf(row: CallRow): number {
  return row.arguments.length + (row.result?.length ?? 0);
}
