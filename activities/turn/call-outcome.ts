import { ApplicationFailure } from '@temporalio/common';
import type { CallStatus } from '../../workflows/core/tools.ts';
import { isCancelRequested } from '../heartbeat.ts';
import type { NewEvent } from '../store/events.ts';
import type { EffectState } from '../store/schema.ts';
import type { ToolResult } from '../tools/define-tool.ts';

/** How a call is to be kept. */
export interface CallOutcome {
  readonly status: CallStatus;
  readonly result: ToolResult;
  /** The ledger's new state; null for a reader. */
  readonly effect: EffectState | null;
  /** The attempt that the ledger names, where another one tells what became of it. */
  readonly heldBy?: string | null;
  /** What else is told with it. */
  readonly events?: readonly NewEvent[];
}

export function returned(result: ToolResult, effect: EffectState | null): CallOutcome {
  return { status: result.isError ? 'error' : 'ok', result, effect };
}

export function failed(text: string, note: string): ToolResult {
  return { isError: true, text, note };
}

/** A stop that nobody asked for (a worker that leaves, a reset) settles nothing: the next attempt will. */
export function giveUpUnlessCancelled(superseded?: AbortSignal): void {
  // A newer attempt in this process waits for this one, and decides instead of it.
  if (isCancelRequested() && !superseded?.aborted) return;
  throw ApplicationFailure.retryable(
    'This worker is going away; the call goes to another attempt.',
    'attempt.given_up',
  );
}
