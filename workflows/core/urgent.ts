import type { TurnState } from './turn-state.ts';

/** New messages, each once: one that could not wait and was heard before is a repeated notice, whatever took it in. */
export function arrived(state: TurnState, inputs: readonly string[], urgent: readonly string[]): TurnState {
  const heard = state.urgent ?? [];
  const inbox = [...new Set([...state.inbox, ...inputs.filter((id) => !heard.includes(id))])];
  const pressingNow = urgent.filter((id) => !heard.includes(id));
  return { ...state, inbox, ...(pressingNow.length > 0 ? { urgent: [...heard, ...pressingNow] } : {}) };
}

/** The first message that can't wait and that no commit has taken in; `taken`: those that the running step takes. */
export function pressing({ inbox, urgent = [] }: TurnState, taken: readonly string[] = []): string | null {
  return inbox.find((id) => urgent.includes(id) && !taken.includes(id)) ?? null;
}

/**
 * Whether readers of the running batch are cut: nobody waits for their results any more. Where the message was the
 * answer to an approval, the calls before that one have been let run, and do.
 */
export function cutsReaders(state: TurnState): boolean {
  const { phase } = state;
  return phase.kind === 'batch' && phase.fuse === null && pressing(state) !== null;
}

/**
 * Whether it ends the rest that runs. The back-off of a compaction stays: without the summary the message could not
 * be sent either.
 */
export function cutsRest(state: TurnState): boolean {
  return state.phase.kind === 'resting' && pressing(state) !== null;
}
