import type { Message } from '../../workflows/core/transcript.ts';
import type { call, UndoState } from '../store/schema.ts';

/** `begun`: the ledger has it as more than intended; `undo`: what it has of taking it back. */
type CallRow = typeof call.$inferSelect & { readonly begun: boolean; readonly undo: UndoState | null };

/** Results in call order. A call without one gets the plain truth: never started, or nobody knows. */
export function resultMessages(calls: readonly CallRow[], canReadOutput = false): Message[] {
  return calls.map((row) => ({
    kind: 'tool_result',
    ordinal: row.ordinal,
    callId: row.providerCallId,
    tool: row.tool,
    text: textOf(row, canReadOutput),
    isError: row.status !== 'ok',
    blob: row.blob,
  }));
}

function textOf(row: CallRow, canReadOutput: boolean): string {
  const text = outcomeText(row, canReadOutput);
  return row.undo === null ? text : `${text}\n[${UNDO_TEXTS[row.undo]}]`;
}

const UNDO_UNKNOWN =
  'When the work was stopped, taking this back was tried; whether it worked is not known. Check the state of things.';

const UNDO_TEXTS: Readonly<Record<UndoState, string>> = {
  undone: 'When the work was stopped, this was taken back: it has no effect any more.',
  failed: 'When the work was stopped, taking this back was tried and failed. Check the state of things.',
  unknown: UNDO_UNKNOWN,
  started: UNDO_UNKNOWN,
};

function outcomeText({ result, begun, blob, note }: CallRow, canReadOutput: boolean): string {
  if (result === null) return begun ? CUT_TEXTS.unknown : note === WAITS ? STOPPED_WAITING : NOT_STARTED;
  return blob !== null && canReadOutput ? `${result}\n[The whole output is kept: read_output, id ${blob}]` : result;
}

/** Note of a call that waits. */
export const WAITS = 'waits';

const STOPPED_WAITING =
  'Stopped while it waited: the turn was stopped before what it waited for came. It had no effect.';

const NOT_STARTED = 'Not started: the turn was stopped before this call began. It had no effect.';

/** What the model is told of a call that was cut or lost, by what is known of it. */
export const CUT_TEXTS = {
  stopped: 'Stopped before it finished. It is known to have had no effect.',
  absent: 'It was tried several times and never arrived. It is known to have had no effect.',
  unknown:
    'Interrupted while it ran: whether it took effect is not known. Check the state of things before you repeat it.',
} as const;
