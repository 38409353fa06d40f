import { backoffMs, waitOf } from './backoff.ts';
import { overflowed, tooLarge } from './compaction.ts';
import type { End } from './ends.ts';
import { patienceOf, POLICY } from './policy.ts';
import { switchModel } from './recovering/fallback.ts';
import { refuseCap } from './recovering/length.ts';
import { retryTurn } from './recovering/outage.ts';
import type { ProviderFailure } from './sample-outcome.ts';
import type { Tries, TurnState } from './turn-state.ts';

/** What follows from a provider failure: a rest with one budget spent, or the end that has its name. */
export function afterFailure(given: TurnState, failure: ProviderFailure, dice: number): TurnState {
  const state = failure.kind === 'overloaded' ? given : withoutRow(given);
  switch (failure.kind) {
    case 'transport':
    case 'stalled':
      return retryTransport(state, failure, null, dice);
    case 'overloaded':
      return retryTransport(state, failure, failure.afterMs, dice);
    case 'server_error':
      return failure.final ? unavailable(state, failure, 1) : retryTransport(state, failure, null, dice);
    case 'rate_limited':
      return waitForRate(state, failure);
    case 'auth':
      return retryAuth(state, failure);
    case 'doom_loop':
      return resampleDoomLoop(state);
    case 'overflow':
      return overflowed(state, failure);
    case 'too_large':
      return tooLarge(state);
    case 'invalid_request':
      return (
        refuseCap(state) ?? refused(state, { name: 'provider_answer', cause: failure.kind, status: failure.status })
      );
  }
}

/** Overloads are in a row only if nothing else comes between them. */
function withoutRow(state: TurnState): TurnState {
  return state.tries.overloads === 0 ? state : { ...state, tries: { ...state.tries, overloads: 0 } };
}

function retryTransport(state: TurnState, failure: ProviderFailure, askedMs: number | null, dice: number): TurnState {
  const used = state.tries.transport + 1;
  const overloads = failure.kind === 'overloaded' ? state.tries.overloads + 1 : 0;
  const switched = switchModel(state, overloads);
  if (switched) return switched;
  const patience = patienceOf(state.rules);
  if (askedMs !== null && askedMs > patience.rateLimitWaitMaxMs) {
    return parked(state, failure, { waitMs: askedMs, used, overloads });
  }
  if (used >= patience.transportAttempts) return retryTurn(state) ?? unavailable(state, failure, used);
  return resting(state, failure, backoffMs(patience, { used, askedMs, dice }), { transport: used, overloads });
}

function waitForRate(state: TurnState, failure: ProviderFailure & { kind: 'rate_limited' }): TurnState {
  const patience = patienceOf(state.rules);
  const waitMs = waitOf(patience, failure);
  const used = state.tries.rateLimit + 1;
  if (failure.quota || waitMs > patience.rateLimitWaitMaxMs)
    return parked(state, failure, { waitMs, used, overloads: 0 });
  return used > patience.rateLimitAttempts
    ? unavailable(state, failure, used, waitMs)
    : resting(state, failure, waitMs, { rateLimit: used });
}

interface Parking {
  readonly waitMs: number;
  readonly used: number;
  readonly overloads: number;
}

/** Too long to be waited out by a try: time of its own, however often. */
function parked(state: TurnState, failure: ProviderFailure, { waitMs, used, overloads }: Parking): TurnState {
  const parkedMs = state.tries.parkedMs + waitMs;
  return parkedMs > patienceOf(state.rules).parkMaxMs
    ? unavailable(state, failure, used, waitMs)
    : resting(state, failure, waitMs, { parkedMs, overloads });
}

function retryAuth(state: TurnState, failure: ProviderFailure & { kind: 'auth' }): TurnState {
  const used = state.tries.auth + 1;
  const delayMs = patienceOf(state.rules).authDelaysMs[used - 1];
  if (delayMs === undefined) {
    return ended(state, {
      reason: 'ERROR',
      detail: 'auth',
      decidedBy: 'runtime',
      signal: { name: 'provider_answer', cause: failure.kind, status: failure.status },
      phase: 'sampling',
    });
  }
  return resting(state, failure, delayMs, { auth: used });
}

/** Asked for anew, under a new key. Past the budget nobody watches, so the next reply is taken as it is. */
function resampleDoomLoop(state: TurnState): TurnState {
  const doom = state.tries.doom + 1;
  if (doom > POLICY.doomLoop.resamples) {
    return ended(state, {
      reason: 'ERROR',
      detail: 'model',
      decidedBy: 'runtime',
      signal: { name: 'retries_spent', cause: 'doom_loop', used: doom },
      phase: 'sampling',
    });
  }
  return {
    ...state,
    phase: { kind: 'ready' },
    resample: state.resample + 1,
    tries: { ...state.tries, doom },
    transition: 'resampled_doom_loop',
  };
}

function resting(state: TurnState, failure: ProviderFailure, forMs: number, tries: Partial<Tries>): TurnState {
  return {
    ...state,
    phase: { kind: 'resting', untilMs: state.atMs + forMs, cause: failure.kind },
    tries: { ...state.tries, ...tries },
  };
}

/** `waitMs`: what the provider asked for itself; a hint, so never an hour that no clock knows. */
function unavailable(state: TurnState, failure: ProviderFailure, used: number, waitMs = 0): TurnState {
  const resumeMs = Math.min(Math.max(waitMs, patienceOf(state.rules).resumeAfterMs), POLICY.resume.afterMaxMs);
  return ended(state, {
    reason: 'ERROR',
    detail: 'provider_unavailable',
    decidedBy: 'runtime',
    signal: { name: 'retries_spent', cause: failure.kind, used },
    phase: 'sampling',
    resumeAtMs: state.atMs + resumeMs,
  });
}

function refused(state: TurnState, signal: End['signal']): TurnState {
  return ended(state, {
    reason: 'ERROR',
    detail: 'invalid_request',
    decidedBy: 'runtime',
    signal,
    phase: 'sampling',
  });
}

function ended(state: TurnState, end: End): TurnState {
  return { ...state, phase: { kind: 'ending', end } };
}
