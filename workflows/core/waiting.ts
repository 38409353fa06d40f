import type { End } from './ends.ts';
import { callsOf, isWaiting, type TurnState } from './turn-state.ts';

/** What a turn waits for while nobody works on it; codes, ids and times only. */
export type WaitingFor =
  | { readonly kind: 'approval' | 'outcome' | 'input' | 'event'; readonly id: string; readonly untilMs: number }
  | { readonly kind: 'rest'; readonly cause: string; readonly untilMs: number };

/** Null: it works, or it has ended. */
export function waitingFor(state: TurnState): WaitingFor | null {
  const { phase } = state;
  if (!isWaiting(phase)) return null;
  if (phase.kind === 'resting') return { kind: 'rest', cause: phase.cause, untilMs: phase.untilMs };
  if (phase.kind === 'compaction_resting') return { kind: 'rest', cause: 'compaction', untilMs: phase.untilMs };
  for (const call of callsOf(phase)) {
    if (call.state === 'asking') return { kind: 'approval', id: call.approval, untilMs: call.untilMs };
    if (call.state === 'in_doubt') return { kind: 'outcome', id: call.approval, untilMs: call.untilMs };
    if (call.state !== 'waiting') continue;
    return { kind: call.ref.tool === ASKS ? 'input' : 'event', id: call.approval, untilMs: call.untilMs };
  }
  return null;
}

/** The tool that asks a person; every other wait is for something outside. */
const ASKS = 'ask_user';

/** The code that operators search by. */
export function waitCode(wait: WaitingFor): string {
  return wait.kind === 'rest' ? `rest:${wait.cause}` : wait.kind;
}

/** What a turn that has ended still waits for, as a code; null where nothing. */
export function waitCodeOfEnd({ detail }: Pick<End, 'detail'>): string | null {
  switch (detail) {
    case 'awaiting_approval':
      return 'approval';
    case 'awaiting_input':
      return 'input';
    case 'external_dependency':
      return 'event';
    default:
      return null;
  }
}
