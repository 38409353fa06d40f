import type { TokenUsage } from '../../workflows/core/sample-outcome.ts';
import { asObject, type JsonObject } from './json.ts';

export const UNKNOWN_USAGE: TokenUsage = {
  inputTokens: 0,
  cachedTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  complete: false,
};

/**
 * The usage that a frame reports, in any of the places where providers put it; null where it says
 * nothing or only zeros. `complete` says that both counts were given.
 */
export function readUsage(frame: JsonObject, choice: JsonObject | null): TokenUsage | null {
  const report =
    asObject(frame['usage']) ??
    asObject(choice?.['usage']) ??
    asObject(asObject(frame['response'])?.['usage']) ??
    asObject(asObject(frame['x_groq'])?.['usage']);
  if (!report) return null;
  const input = count(report['prompt_tokens'] ?? report['input_tokens']);
  const output = count(report['completion_tokens'] ?? report['output_tokens']);
  if (!input && !output) return null;
  const inputDetails = asObject(report['prompt_tokens_details'] ?? report['input_tokens_details']);
  const outputDetails = asObject(report['completion_tokens_details'] ?? report['output_tokens_details']);
  const cached =
    count(inputDetails?.['cached_tokens']) ??
    count(report['prompt_cache_hit_tokens']) ??
    count(report['cached_tokens']);
  return {
    inputTokens: input ?? 0,
    cachedTokens: cached ?? 0,
    outputTokens: output ?? 0,
    reasoningTokens: count(outputDetails?.['reasoning_tokens']) ?? 0,
    complete: Boolean(input) && output !== null,
  };
}

function count(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? Math.round(value) : null;
}
