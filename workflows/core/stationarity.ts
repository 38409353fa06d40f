import type { End } from './ends.ts';
import { POLICY } from './policy.ts';
import { NO_REPEATS, type Repeats } from './turn-counters.ts';
import type { BatchCall, TurnState } from './turn-state.ts';

/** A batch has come back: the same as the one before counts on, another one begins anew; a look at what still runs is none. */
export function repeated(before: Repeats, calls: readonly BatchCall[]): Repeats {
  if (calls.some((call) => 'stillRuns' in call)) return NO_REPEATS;
  const batch = hashOf(calls);
  return { batch, tier: tierOf(calls), times: batch === before.batch ? before.times + 1 : 1 };
}

/** Whether it is time to tell the model. */
export function isNudgeDue({ tier, times }: Repeats): boolean {
  return times === POLICY.stationarity[tier].nudgeAt;
}

/** The same calls too often, and nothing new to go on with. */
export function noProgress({ repeats, inbox }: TurnState): End | null {
  const allowed = POLICY.stationarity[repeats.tier].endAt;
  if (repeats.times < allowed || inbox.length > 0) return null;
  return {
    reason: 'BLOCKED',
    detail: 'no_progress',
    decidedBy: 'runtime',
    signal: { name: 'limit', limit: 'identical_steps', allowed, used: repeats.times },
    phase: 'tools',
  };
}

/** Reading the same again tells nothing new; a tool that is made for polling, and a wait, may be used for longer. */
function tierOf(calls: readonly BatchCall[]): Repeats['tier'] {
  const early = calls.every(({ ref }) => ref.effect === 'none' && ref.runs === 'activity' && !ref.polling);
  return early ? 'readers' : 'others';
}

function hashOf(calls: readonly BatchCall[]): string {
  return mixed(calls.map(({ ref }) => `${ref.tool}:${ref.argsHash}`).join('|'));
}

/** 53 bits of a string (cyrb53): the sandbox has no crypto, and nobody gains by a collision. */
function mixed(text: string): string {
  let a = 0xdeadbeef;
  let b = 0x41c6ce57;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    a = Math.imul(a ^ code, 2_654_435_761);
    b = Math.imul(b ^ code, 1_597_334_677);
  }
  a = Math.imul(a ^ (a >>> 16), 2_246_822_507) ^ Math.imul(b ^ (b >>> 13), 3_266_489_909);
  b = Math.imul(b ^ (b >>> 16), 2_246_822_507) ^ Math.imul(a ^ (a >>> 13), 3_266_489_909);
  return (4_294_967_296 * (2_097_151 & b) + (a >>> 0)).toString(36);
}
