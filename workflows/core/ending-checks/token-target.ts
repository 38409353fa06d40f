import type { End } from '../ends.ts';
import { goingOn } from '../going-on.ts';
import { POLICY } from '../policy.ts';
import type { TurnState } from '../turn-state.ts';
import type { Verdict } from './check.ts';

/** Goes on until most of the target is used, unless going on brings next to nothing any more. */
export function tokenTarget(state: TurnState, end: End): Verdict {
  const { tokenTarget: target, role } = state.rules;
  const { untilShare, continuations, minimumGainTokens } = POLICY.tokenTarget;
  const used = state.usage.outputTokens;
  if (target === null || role === 'sub_agent' || used >= target * untilShare) return { kind: 'passes', state, end };
  const before = state.target;
  const gain = used - before.atTokens;
  const isIdle = Math.max(gain, before.lastGain) < minimumGainTokens;
  if (before.continuations >= continuations && isIdle) return { kind: 'passes', state, end };
  const next = { continuations: before.continuations + 1, atTokens: used, lastGain: gain };
  const on = goingOn({ ...state, reminders: ['token_target'] }, 'token_target');
  return { kind: 'goes_on', state: { ...on, target: next } };
}
