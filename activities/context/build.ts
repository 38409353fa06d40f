import { POLICY } from '../../workflows/core/policy.ts';
import type { Message } from '../../workflows/core/transcript.ts';
import { estimateText, estimateTools } from '../model/estimate.ts';
import type { StoredAgent, StoredTool } from '../store/schema.ts';
import type { Link } from '../store/transcript.ts';

export type BuiltContext =
  | { readonly fits: true; readonly messages: readonly Message[]; readonly estimateTokens: number }
  | {
      readonly fits: false;
      readonly misfit: 'needs_compaction' | 'no_room';
      readonly messages: readonly Message[];
      readonly estimateTokens: number;
    };

interface Frame {
  readonly agent: StoredAgent;
  readonly tools: readonly StoredTool[];
  readonly contextTokens: number;
}

/** From a chain to what the model is shown. At 85 % of the window or over, no request is made. */
export function buildContext(chain: readonly Link[], frame: Frame): BuiltContext {
  const messages = chain.map((link) => link.body);
  const fixed = estimateText(frame.agent.instructions) + estimateTools(frame.tools);
  const estimateTokens = chain.reduce((sum, link) => sum + link.tokens, fixed);
  const left = frame.contextTokens - estimateTokens;
  if (left < POLICY.sample.minimumRoomTokens) return { fits: false, misfit: 'no_room', messages, estimateTokens };
  if (estimateTokens >= frame.contextTokens * POLICY.sample.compactionAtShare) {
    return { fits: false, misfit: 'needs_compaction', messages, estimateTokens };
  }
  return { fits: true, messages, estimateTokens };
}
