import { roomTokens } from '../../workflows/core/compaction.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import { estimateText, estimateTools } from '../model/estimate.ts';
import type { Shown } from '../model/port.ts';
import { repairPairs } from '../model/repair-pairs.ts';
import type { StoredAgent, StoredTool } from '../store/schema.ts';
import type { Link } from '../store/transcript.ts';
import { collapse } from './collapse.ts';
import { dropDirectives, isDirective } from './drop-directives.ts';
import { estimated, factorOf, type Gauge, gaugeAt } from './gauge.ts';
import { microCompact } from './micro-compact.ts';
import { resultBudget } from './result-budget.ts';
import { snip } from './snip.ts';
import { type Pressure, type Stage, sumTokens, tokensOf } from './stage.ts';
import { stripImages } from './strip-images.ts';
import { type View, viewOf } from './view.ts';

export type BuiltContext = { readonly messages: readonly Shown[]; readonly estimateTokens: number } & (
  | { readonly fits: true }
  | { readonly fits: false; readonly misfit: 'needs_compaction' | 'no_room' }
);

export interface Frame {
  readonly agent: StoredAgent;
  readonly tools: readonly StoredTool[];
  readonly contextTokens: number;
  /** Whether what does not fit may be compacted. */
  readonly mayCompact: boolean;
}

/** From a chain to what the model is shown. At 85 % of the window or over, no request is made. */
export function buildContext(chain: readonly Link[], frame: Frame): BuiltContext {
  const { messages, estimateTokens } = trimmed(viewOf(chain), frame);
  const { contextTokens, mayCompact } = frame;
  if (mayCompact && estimateTokens >= roomTokens(contextTokens)) {
    return { fits: false, misfit: 'needs_compaction', messages, estimateTokens };
  }
  if (contextTokens - estimateTokens < POLICY.sample.minimumRoomTokens) {
    return { fits: false, misfit: 'no_room', messages, estimateTokens };
  }
  return { fits: true, messages, estimateTokens };
}

/** In this order; under pressure only as much as is needed. Pairs and the budget of results come first. */
const UNDER_PRESSURE: readonly Stage[] = [snip, microCompact, collapse];

/**
 * Plays the builds that this chain has seen, each before the reply that it led to: what was trimmed then is
 * trimmed the same way now, so that the beginning of a request stays the same bytes from step to step.
 */
function trimmed(view: View, frame: Frame): { readonly messages: readonly Shown[]; readonly estimateTokens: number } {
  const { contextTokens, tools } = frame;
  const readers = new Set(tools.filter(({ effect }) => effect === 'none').map(({ name }) => name));
  const whole = { needTokens: 0, contextTokens, readers };
  const kept = new Set<Shown>(view.links.slice(0, view.kept).map(({ body }) => body));
  const fixed = estimateText(frame.agent.instructions) + estimateTools(tools);
  let state: Built = { shown: [], sum: fixed, gauge: null, directives: 0 };
  for (const message of prepared(view, whole)) {
    const isReply = message.kind === 'assistant';
    if (isReply) state = built(state, whole);
    state.shown.push(message);
    const sum = state.sum + tokensOf(message);
    state = { ...state, sum, directives: state.directives + (isDirective(message) ? 1 : 0) };
    // What stayed of an earlier context was counted with all that is gone now.
    if (isReply && message.measuredTokens !== undefined && !kept.has(message)) {
      state = { ...state, gauge: gaugeAt(sum, message.measuredTokens) };
    }
  }
  const { shown, sum, gauge } = built(state, whole);
  return { messages: shown, estimateTokens: estimated(gauge, sum) };
}

/** Pairs, then the budget of each round's results, then images that were refused: the same in every build. */
function prepared({ summary, links }: View, whole: Pressure): readonly Shown[] {
  const bodies: Shown[] = links.map(({ body }) => body);
  const paired = repairPairs(summary ? [summary, ...bodies] : bodies);
  return stripImages(resultBudget(paired, whole).shown, whole).shown;
}

interface Built {
  readonly shown: Shown[];
  /** Of everything that is sent, by bytes. */
  readonly sum: number;
  readonly gauge: Gauge | null;
  readonly directives: number;
}

/** What one build did: nothing while there is room. */
function built(state: Built, whole: Pressure): Built {
  const { gauge, sum, directives } = state;
  const estimate = estimated(gauge, sum);
  const isPressed = estimate >= roomTokens(whole.contextTokens);
  if (!isPressed && directives < 2) return state;
  const target = whole.contextTokens * POLICY.context.trimmedToShare;
  let needTokens = isPressed
    ? Math.ceil((estimate - Math.min(target, roomTokens(whole.contextTokens))) / factorOf(gauge))
    : 0;
  let shown: readonly Shown[] = state.shown;
  for (const stage of [...UNDER_PRESSURE, dropDirectives]) {
    const { shown: left, freedTokens } = stage(shown, { ...whole, needTokens });
    shown = left;
    needTokens -= freedTokens;
  }
  const freed = sumTokens(state.shown) - sumTokens(shown);
  return { shown: [...shown], sum: sum - freed, gauge, directives: Math.min(directives, 1) };
}
