import { patienceOf, POLICY } from '../../workflows/core/policy.ts';
import type { CompactRequest } from '../../workflows/core/requests.ts';
import { buildContext, type Frame } from '../context/build.ts';
import { cutBefore } from '../context/cut.ts';
import { SUMMARY_INSTRUCTIONS, summaryRequest } from '../context/summary.ts';
import { type View, viewOf } from '../context/view.ts';
import type { Deps } from '../deps.ts';
import { estimateMessage, estimateText } from '../model/estimate.ts';
import type { ModelRequest } from '../model/port.ts';
import { agentOf, playedBy, toolsOf } from '../store/definitions.ts';
import { sha256 } from '../store/hash.ts';
import type { TurnOwner } from '../store/owners.ts';
import { type Link, loadChain } from '../store/transcript.ts';
import { type Pricing, pricingOf } from './pricing.ts';

/** Everything about a compaction that is decided before a byte is sent. */
export interface CompactionPlan {
  readonly owner: TurnOwner;
  /** The compaction's commit key, shared by all attempts of these bytes. */
  readonly key: string;
  readonly chain: readonly Link[];
  readonly view: View;
  /** How many links of the view the summary stands for. */
  readonly replaced: number;
  /** Depth of the oldest message that stays. */
  readonly keptFrom: number;
  readonly depth: number;
  readonly frame: Frame;
  readonly beforeTokens: number;
  readonly request: ModelRequest;
  readonly pricing: Pricing;
}

/** `off`: the agent does without. `nothing`: no whole round is old enough. */
export async function planCompaction(
  deps: Deps,
  owner: TurnOwner,
  request: CompactRequest,
): Promise<CompactionPlan | 'off' | 'nothing'> {
  const { db } = deps.database;
  const [pinned, tools, chain] = await Promise.all([
    agentOf(db, request.agent),
    toolsOf(db, request.tools),
    loadChain(db, deps.chains, request.head),
  ]);
  if (pinned.compaction === false) return 'off';
  const agent = playedBy(pinned, request.model);
  const { contextTokens, shrinks } = request;
  const frame = { agent, tools, contextTokens, mayCompact: true };
  const view = viewOf(chain);
  const beforeTokens = buildContext(chain, frame).estimateTokens;
  const bodies = view.links.map(({ body }) => body);
  // A provider that says it does not fit may have a smaller window than we know of.
  const replaced = cutBefore(
    bodies,
    Math.min(contextTokens, beforeTokens) * POLICY.compaction.keptShare,
    contextTokens,
  );
  if (replaced === null) return 'nothing';
  const depth = chain[chain.length - 1]?.depth ?? 0;
  const older = bodies.slice(0, replaced);
  const key = sha256(
    'compaction',
    owner.id,
    request.head,
    request.tools,
    request.agent,
    String(contextTokens),
    String(shrinks),
    request.model,
    String(request.resample),
  );
  const message = summaryRequest(
    view.summary ? [view.summary, ...older] : older,
    (contextTokens * POLICY.compaction.requestShare) / 2 ** shrinks,
  );
  const inputTokens = estimateText(SUMMARY_INSTRUCTIONS) + estimateMessage(message);
  return {
    owner,
    key,
    chain,
    view,
    replaced,
    keptFrom: view.links[replaced]?.depth ?? depth + 1,
    depth,
    frame,
    beforeTokens,
    pricing: pricingOf(agent, { inputTokens, outputTokens: POLICY.compaction.summaryTokens }),
    request: {
      provider: agent.provider,
      model: agent.model,
      instructions: SUMMARY_INSTRUCTIONS,
      messages: [message],
      tools: [],
      clocks: patienceOf(pinned),
      watchRepetition: true,
      outputTokens: POLICY.compaction.summaryTokens,
      idempotencyKey: sha256('http', key).slice(0, 40),
    },
  };
}
