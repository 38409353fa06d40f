import { POLICY } from '../../workflows/core/policy.ts';
import { fitText } from '../tools/text.ts';
import { roundsOf, type Round } from './rounds.ts';
import { replacing, type Stage, tokensOf } from './stage.ts';

/**
 * The results of one round together take no more than their share of the window: the largest are cut to head
 * and tail. Always applied, and first, since one round may be larger than the whole window.
 */
export const resultBudget: Stage = (shown, { contextTokens }) => {
  const budget = contextTokens * POLICY.context.roundShare;
  const caps = new Map<number, number>();
  for (const round of roundsOf(shown)) {
    const cap = capOf(round, budget);
    if (cap === null) continue;
    for (let at = round.start + 1; at < round.end; at += 1) caps.set(at, cap);
  }
  if (caps.size === 0) return { shown, freedTokens: 0 };
  return replacing(shown, Infinity, (message, n) => {
    const cap = caps.get(n);
    if (message.kind !== 'tool_result' || cap === undefined || tokensOf(message) <= cap) return null;
    return { ...message, text: fitTokens(message.text, cap) };
  });
};

/** The size above which results are cut so that all fit, in tokens; null where they fit as they are. */
function capOf({ results }: Round, budget: number): number | null {
  const sizes = results.map(tokensOf).sort((a, b) => a - b);
  if (sizes.reduce((sum, size) => sum + size, 0) <= budget) return null;
  let left = budget;
  for (const [n, size] of sizes.entries()) {
    const share = left / (sizes.length - n);
    if (size > share) return Math.max(MINIMUM_TOKENS, Math.floor(share));
    left -= size;
  }
  return null;
}

/** Room for the line that says what is missing, and for what every message costs. */
const MINIMUM_TOKENS = 64;
const OVERHEAD_TOKENS = 16;

/** Halves of the text until it has at most so many tokens: characters of other scripts are several bytes. */
function fitTokens(text: string, tokens: number): string {
  const bytes = Math.max(0, tokens - OVERHEAD_TOKENS) * 4;
  let chars = Math.min(text.length, bytes);
  for (;;) {
    const cut = fitText(text, chars);
    if (Buffer.byteLength(cut) <= bytes || chars < 80) return cut;
    chars = Math.floor(chars * Math.min(0.9, bytes / Buffer.byteLength(cut)));
  }
}
