import { POLICY } from '../../workflows/core/policy.ts';
import { oldestOfNewest } from './rounds.ts';
import { replacing, type Stage } from './stage.ts';

/** Old results of tools that only read: they can be called again. */
export const microCompact: Stage = (shown, { needTokens, readers }) => {
  const { keptRounds, minimumChars } = POLICY.context.microCompact;
  if (needTokens <= 0) return { shown, freedTokens: 0 };
  const limit = oldestOfNewest(shown, keptRounds);
  return replacing(shown, needTokens, (message, n) => {
    if (n >= limit || message.kind !== 'tool_result' || message.isError) return null;
    if (!readers.has(message.tool) || message.text.length < minimumChars) return null;
    return { ...message, text: REMOVED };
  });
};

const REMOVED = '[This old result was left out to save room. Make the call again if you need it.]';
