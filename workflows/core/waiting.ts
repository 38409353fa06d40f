import { AGENT_TOOLS } from './agents.ts';
import type { End } from './ends.ts';
import type { CallRef } from './tools.ts';
import { callsOf, isWaiting, type TurnState } from './turn-state.ts';

/** What a turn waits for while nobody works on it; codes, ids and times only. */
export type WaitingFor =
  | {
      readonly kind: 'approval' | 'outcome' | 'input' | 'event' | 'agent';
      readonly id: string;
      readonly untilMs: number;
    }
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
    return { kind: waitKindOf(call.ref), id: call.approval, untilMs: call.untilMs };
  }
  return null;
}

/** The tool that asks a person. */
const ASKS = 'ask_user';

/** What is neither for a person nor for a sub-agent is for something outside. */
function waitKindOf({ runs, tool }: CallRef): 'agent' | 'input' | 'event' {
  if (runs === 'child' || tool === AGENT_TOOLS.wait) return 'agent';
  return tool === ASKS ? 'input' : 'event';
}

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
