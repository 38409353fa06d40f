import type { Message } from '../../workflows/core/transcript.ts';
import { resultBudget } from './result-budget.ts';
import { tokensOf } from './stage.ts';

/**
 * Index of the first message that stays: as many of the newest as fit, cut only between whole rounds.
 * Null where there is no such place but the very beginning.
 */
export function cutBefore(messages: readonly Message[], keepTokens: number, contextTokens: number): number | null {
  const shown = resultBudget(messages, { needTokens: 0, contextTokens, readers: new Set() }).shown;
  const safe = safeCuts(messages);
  let kept = 0;
  let best: number | null = null;
  for (let at = messages.length; at > 0; at -= 1) {
    const message = shown[at];
    if (message) kept += tokensOf(message);
    if (kept > keepTokens) break;
    if (safe.has(at)) best = at;
  }
  return best;
}

/** Places where no call has its result on the other side, and no call still waits for one. */
function safeCuts(messages: readonly Message[]): ReadonlySet<number> {
  const cuts = new Set<number>();
  const open = new Set<number>();
  for (const [at, message] of messages.entries()) {
    // A result that comes late belongs to the assistant message before it, whatever came between.
    if (open.size === 0 && nextOfRound(messages, at) !== 'tool_result') cuts.add(at);
    if (message.kind === 'tool_result') open.delete(message.ordinal);
    if (message.kind !== 'assistant') continue;
    open.clear();
    if (!message.cut) for (const ordinal of message.calls.keys()) open.add(ordinal);
  }
  if (open.size === 0) cuts.add(messages.length);
  return cuts;
}

function nextOfRound(messages: readonly Message[], from: number): 'assistant' | 'tool_result' | null {
  for (let at = from; at < messages.length; at += 1) {
    const kind = messages[at]?.kind;
    if (kind === 'assistant' || kind === 'tool_result') return kind;
  }
  return null;
}
