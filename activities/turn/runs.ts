import { turnWorkflowId } from '../../workflows/messages.ts';
import type { Deps } from '../deps.ts';
import type { ConfirmRun } from '../store/fence.ts';

/** Runs this process has already entered; a cache only, the store decides. */
export const knownRuns = new Set<string>();

export function confirmRun(deps: Deps): ConfirmRun {
  return (turn, run) => deps.engine.isCurrentRun(turnWorkflowId(turn), run);
}
