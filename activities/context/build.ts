import { roomTokens } from '../../workflows/core/compaction.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import { estimateText, estimateTools } from '../model/estimate.ts';
import type { AnswerFormat, Shown } from '../model/port.ts';
import { repairPairs } from '../model/repair-pairs.ts';
import type { StoredAgent, StoredTool } from '../store/schema.ts';
import type { Link } from '../store/transcript.ts';
import { collapse } from './collapse.ts';
import { dropDirectives, isDirective } from './drop-directives.ts';
import { estimated, factorOf, gaugeAt } from './gauge.ts';
import { type Built, KnownBuilds } from './known-builds.ts';
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
  /** The shape of the reply, where the provider is told it beside the tools. */
  readonly answer?: AnswerFormat | null;
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
  const { contextTokens, tools, answer } = frame;
  const readers = new Set(tools.filter(({ effect }) => effect === 'none').map(({ name }) => name));
  const whole = { needTokens: 0, contextTokens, readers };
  const format = answer ? estimateText(JSON.stringify(answer.schema)) : 0;
  const fixed = estimateText(frame.agent.instructions) + estimateTools(tools) + format;
  const builds = new KnownBuilds([view.root, contextTokens, fixed, ...readers].join(' '));
  const known = builds.newest(view.links);
  const kept = new Set<Shown>(view.links.slice(0, view.kept).map(({ body }) => body));
  const hashes = new Map<Shown, string>(view.links.slice(known?.at ?? 0).map(({ body, hash }) => [body, hash]));
  let state: Built = known?.built ?? { shown: [], sum: fixed, gauge: null, directives: 0 };
  state = { ...state, shown: [...state.shown] };
  let last: { readonly reply: Shown; readonly built: Built; readonly length: number } | null = null;
  for (const [n, message] of prepared(view, known?.at ?? null, whole).entries()) {
    const isReply = message.kind === 'assistant';
    if (isReply && !(known && n === 0)) {
      state = built(state, whole);
      last = { reply: message, built: state, length: state.shown.length };
    }
    state = withMessage(state, message, !kept.has(message));
  }
  if (last) builds.keep(hashes.get(last.reply), { ...last.built, shown: last.built.shown.slice(0, last.length) });
  const { shown: messages, sum, gauge } = built(state, whole);
  return { messages, estimateTokens: estimated(gauge, sum) };
}

function withMessage(state: Built, message: Shown, isCounted: boolean): Built {
  state.shown.push(message);
  const sum = state.sum + tokensOf(message);
  const directives = state.directives + (isDirective(message) ? 1 : 0);
  // What stayed of an earlier context was counted with all that is gone now.
  const counted = isCounted && message.kind === 'assistant' ? message.measuredTokens : undefined;
  return { ...state, sum, directives, gauge: counted === undefined ? state.gauge : gaugeAt(sum, counted) };
}

/** From a build that is known, or from the beginning: pairs, then the budget of each round's results, then images that were refused: the same in every build. */
function prepared({ summary, links }: View, from: number | null, whole: Pressure): readonly Shown[] {
  const bodies: Shown[] = links.slice(from ?? 0).map(({ body }) => body);
  const paired = repairPairs(summary && from === null ? [summary, ...bodies] : bodies);
  return stripImages(resultBudget(paired, whole).shown, whole).shown;
}

/** What one build did: nothing while there is room. */
function built(state: Built, whole: Pressure): Built {
  const { gauge, sum, directives } = state;
  const estimate = estimated(gauge, sum);
  const room = roomTokens(whole.contextTokens);
  if (estimate < room && directives < 2) return state;
  const target = Math.min(whole.contextTokens * POLICY.context.trimmedToShare, room);
  let needTokens = estimate < room ? 0 : Math.ceil((estimate - target) / factorOf(gauge));
  let shown: readonly Shown[] = state.shown;
  for (const stage of [...UNDER_PRESSURE, dropDirectives]) {
    const { shown: left, freedTokens } = stage(shown, { ...whole, needTokens });
    shown = left;
    needTokens -= freedTokens;
  }
  const freed = sumTokens(state.shown) - sumTokens(shown);
  return { shown: [...shown], sum: sum - freed, gauge, directives: Math.min(directives, 1) };
}
