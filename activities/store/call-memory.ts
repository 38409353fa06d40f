import { effectKey, storable } from './hash.ts';
import type { CallRow } from './ledger.ts';
import type { NewCall } from './turn-commit.ts';

const KEPT = 5_000;

/**
 * Calls that this process stored or finished itself, so that it need not read back what it has just written.
 * Kept is only what nobody can change any more: a reader's call as it was asked for, for its first attempt,
 * and a result that stands.
 */
export class CallMemory {
  readonly #asked = new Map<string, CallRow>();
  readonly #finished = new Map<string, CallRow>();

  /** A reader's call that was committed with its message and goes to no gate. */
  asked(turn: string, assistant: string, step: number, call: NewCall): void {
    keep(this.#asked, call.key, {
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
    const row = this.#asked.get(key);
    this.#asked.delete(key);
    return row;
  }

  /** This very result is the one that stands in the store. */
  finished(row: CallRow): void {
    keep(this.#finished, row.key, row);
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

function keep(rows: Map<string, CallRow>, key: string, row: CallRow): void {
  rows.set(key, row);
  const [oldest] = rows.keys();
  if (rows.size > KEPT && oldest !== undefined) rows.delete(oldest);
}
