import type { CompactionCause, CompactOutcome } from './compact-outcome.ts';
import { backoffMs, waitOf } from './backoff.ts';
import type { End } from './ends.ts';
import { patienceOf, POLICY } from './policy.ts';
import type { ProviderFailure } from './sample-outcome.ts';
import type { ContextTries } from './turn-counters.ts';
import type { TurnState } from './turn-state.ts';

/** From this estimate on no model is called, in tokens. */
export function roomTokens(contextTokens: number): number {
  const { compactionAtShare, minimumRoomTokens } = POLICY.sample;
  return Math.min(contextTokens * compactionAtShare, contextTokens - minimumRoomTokens);
}

/** Whether this context may be compacted now; not where it was tried in vain already, nor in the middle of a text that goes on. */
export function mayCompact(state: TurnState): boolean {
  return state.context.brokenAt !== state.head && state.output.continued === 0;
}

/** The estimate is at the share of the window where no model is called any more. */
export function needsCompaction(state: TurnState): TurnState {
  return { ...state, phase: { kind: 'compacting', cause: 'window' } };
}

/** Nothing more fits, and compaction is off or was tried in vain; unless the context has changed since. */
export function noRoom(state: TurnState, estimateTokens: number): TurnState {
  const changed = state.context.brokenAt !== null && mayCompact(state);
  return changed ? needsCompaction(state) : full(state, estimateTokens);
}

/** The provider says that it does not fit: compacted and sent again, once until a later sample has succeeded. */
export function overflowed(state: TurnState, failure: ProviderFailure & { kind: 'overflow' }): TurnState {
  if (state.context.overflow === 'taken' || !mayCompact(state)) {
    return ended(state, contextEnd({ name: 'provider_answer', cause: failure.kind }, 'sampling'));
  }
  return {
    ...withWindow(state, failure),
    phase: { kind: 'compacting', cause: 'overflow' },
    context: { ...state.context, overflow: 'taken' },
  };
}

/** The provider names its window: it is believed where it is smaller than ours. */
function withWindow(state: TurnState, { windowTokens }: ProviderFailure & { kind: 'overflow' }): TurnState {
  if (windowTokens === undefined || windowTokens >= state.limits.contextTokens) return state;
  return { ...state, limits: { ...state.limits, contextTokens: windowTokens } };
}

/** 413, or an image refused: once without the images, then once shorter, then the end that has its name. */
export function tooLarge(state: TurnState): TurnState {
  if (state.context.images === 'stripped') {
    if (state.context.overflow === 'taken' || !mayCompact(state)) return ended(state, tooLargeEnd('sampling'));
    const context = { ...state.context, overflow: 'taken' } as const;
    return { ...state, phase: { kind: 'compacting', cause: 'too_large' }, context };
  }
  return {
    ...state,
    phase: { kind: 'ready' },
    resample: state.resample + 1,
    reminders: [...state.reminders, 'images_stripped'],
    context: { ...state.context, images: 'stripped' },
    transition: 'images_stripped',
  };
}

/** A sample has succeeded: what may happen once may happen once more. */
export function afterSuccess(context: ContextTries): ContextTries {
  return { ...context, overflow: 'free', images: 'shown' };
}

/** What follows from a compaction. Its tries are its own: no other budget is touched. */
export function compacted(state: TurnState, outcome: CompactOutcome, dice: number): TurnState {
  if (state.phase.kind !== 'compacting') return state;
  const { cause } = state.phase;
  const patience = patienceOf(state.rules);
  const backoff = (askedMs: number | null) =>
    Math.min(backoffMs(patience, { used: state.context.failed + 1, askedMs, dice }), patience.parkMaxMs);
  switch (outcome.kind) {
    case 'compacted':
      return shortened(state, cause, outcome);
    case 'cut':
      return state;
    case 'attempts_lost':
      return ended(state, {
        reason: 'ERROR',
        detail: 'internal',
        decidedBy: 'runtime',
        signal: { name: 'retries_spent', cause: 'attempts_lost', used: outcome.attempts },
        phase: 'compacting',
      });
    case 'overflow':
      return summaryOverflowed(withWindow(state, outcome), cause);
    case 'auth':
      return tryAgain(state, cause, outcome.kind, patience.authDelaysMs[state.context.failed] ?? 0);
    case 'rate_limited':
      return tryAgain(state, cause, outcome.kind, backoff(waitOf(patience, outcome)));
    case 'server_error':
      if (outcome.final) return inVain(state, cause, outcome.kind);
      return tryAgain(state, cause, outcome.kind, backoff(null));
    case 'overloaded':
      return tryAgain(state, cause, outcome.kind, backoff(outcome.afterMs));
    case 'transport':
    case 'stalled':
    case 'doom_loop':
    case 'empty':
      return tryAgain(state, cause, outcome.kind, backoff(null));
    case 'off':
    case 'nothing':
    case 'too_large':
    case 'invalid_request':
      return inVain(state, cause, outcome.kind);
  }
}

function shortened(
  state: TurnState,
  cause: CompactionCause,
  { head, beforeTokens, afterTokens }: CompactOutcome & { kind: 'compacted' },
): TurnState {
  const window = state.limits.contextTokens;
  const freed = beforeTokens - afterTokens;
  const helped = afterTokens < roomTokens(window) && freed >= window * POLICY.compaction.minimumFreedShare;
  const ineffective = helped ? 0 : state.context.ineffective + 1;
  const next: TurnState = {
    ...state,
    head,
    phase: { kind: 'ready' },
    resample: state.resample + 1,
    context: { ...state.context, failed: 0, shrinks: 0, brokenAt: null, ineffective },
    transition: cause === 'window' ? 'compacted' : 'overflow_compacted',
  };
  return ineffective >= POLICY.compaction.ineffectiveInARow ? full(next, afterTokens, 'compacting') : next;
}

/** The summary's own request was too long: the same again with half of the text, as often as anything else. */
function summaryOverflowed(state: TurnState, cause: CompactionCause): TurnState {
  const shrinks = state.context.shrinks + 1;
  if (shrinks > POLICY.compaction.retries) return inVain(state, cause, 'overflow');
  return { ...state, context: { ...state.context, shrinks } };
}

function tryAgain(
  state: TurnState,
  cause: CompactionCause,
  failure: ProviderFailure['kind'] | 'empty',
  forMs: number,
): TurnState {
  const failed = state.context.failed + 1;
  if (failed > POLICY.compaction.retries) return inVain(state, cause, failure);
  // What the model made of it is asked for under a new key; what got lost on the way under the same.
  const isResample = failure === 'empty' || failure === 'doom_loop';
  return {
    ...state,
    phase: { kind: 'compaction_resting', untilMs: state.atMs + forMs, cause },
    resample: isResample ? state.resample + 1 : state.resample,
    context: { ...state.context, failed },
  };
}

/**
 * Compaction can't help with this context. What still fits is sampled; it is not tried again until the context
 * changed. What the provider has refused already is not sent again.
 */
function inVain(state: TurnState, cause: CompactionCause, why: CompactOutcome['kind']): TurnState {
  const { context } = state;
  const ineffective = why === 'off' ? context.ineffective : context.ineffective + 1;
  const given = { ...context, failed: 0, shrinks: 0, brokenAt: state.head, ineffective };
  const next: TurnState = { ...state, context: given };
  if (cause === 'too_large') return ended(next, tooLargeEnd('compacting'));
  if (cause === 'overflow' || ineffective >= POLICY.compaction.ineffectiveInARow) {
    const used = Math.max(context.failed, context.shrinks) + 1;
    return ended(next, contextEnd({ name: 'retries_spent', cause: `compaction_${why}`, used }, 'compacting'));
  }
  return { ...next, phase: { kind: 'ready' }, transition: 'not_compacted' };
}

function full(state: TurnState, used: number, phase: 'sampling' | 'compacting' = 'sampling'): TurnState {
  const allowed = state.limits.contextTokens;
  return ended(state, contextEnd({ name: 'limit', limit: 'context_tokens', allowed, used }, phase));
}

function contextEnd(signal: End['signal'], phase: End['phase']): End {
  return { reason: 'MAX_TOKENS', detail: 'context_limit', decidedBy: 'runtime', signal, phase };
}

function tooLargeEnd(phase: End['phase']): End {
  const signal = { name: 'provider_answer', cause: 'too_large', status: 413 } as const;
  return { reason: 'ERROR', detail: 'invalid_request', decidedBy: 'runtime', signal, phase };
}

function ended(state: TurnState, end: End): TurnState {
  return { ...state, phase: { kind: 'ending', end } };
}
