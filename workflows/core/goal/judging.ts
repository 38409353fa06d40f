import { POLICY } from '../policy.ts';
import type { GoalEvent, JudgeVerdict, ScepticVote } from './goal-event.ts';
import { goalLimitReached, heldOf, leftOf } from './goal-limits.ts';
import type { AtJudging, AwaitedBy, GoalCause, GoalState, JudgedTurn, Judging } from './goal-state.ts';
import { doing, due, lent, moving } from './moving.ts';

/** The goal is judging that turn, in that stage; what comes otherwise is late and means nothing. */
function judgingNow<K extends Judging['kind']>(
  state: GoalState,
  kind: K,
): (AtJudging & { readonly stage: Judging & { readonly kind: K } }) | null {
  const { status } = state;
  if (status.kind !== 'active' || status.doing.kind !== 'judging' || status.doing.stage.kind !== kind) return null;
  return status.doing as AtJudging & { readonly stage: Judging & { readonly kind: K } };
}

function stage(state: GoalState, turn: JudgedTurn, next: Judging): GoalState {
  return doing(state, { kind: 'judging', turn, stage: next });
}

export function isJudging({ status }: GoalState): boolean {
  return status.kind === 'active' && status.doing.kind === 'judging';
}

/** Whether what is judged has been judged in part before a pause. */
export function isJudgedAgain({ status }: GoalState): boolean {
  return status.kind === 'active' && status.doing.kind === 'judging' && status.doing.turn.isAgain === true;
}

export function beginJudging(state: GoalState, turn: JudgedTurn): GoalState {
  return stage(state, turn, { kind: 'checks' });
}

/** Structure first: a check that passes needs no persuasion, and one that fails can't be talked away. */
export function checked(state: GoalState, heard: GoalEvent & { readonly kind: 'checked' }): GoalState {
  const now = judgingNow(state, 'checks');
  if (!now) return state;
  if (heard.outcome === 'away') return awayFor(state);
  const seen = progressOf({ ...state, verdict: heard.verdict ?? state.verdict }, now.turn, heard.evidence);
  if (heard.outcome === 'passed') return stage(seen, now.turn, { kind: 'stop_gate', by: 'checks' });
  const { idleTurns } = seen.brakes;
  if (idleTurns >= POLICY.goal.idleTurnsInARow) return stuck(seen, { name: 'no_progress', times: idleTurns });
  const { claim } = now.turn;
  if (claim?.kind === 'waiting') return waiting(concluded(seen), claim.awaited, { name: 'claim' });
  return within(stage(seen, now.turn, { kind: 'judge', checks: heard.outcome, failures: 0 }));
}

/** The turn was judged after all: what was away is there again. */
function concluded(state: GoalState): GoalState {
  return { ...state, brakes: { ...state.brakes, outages: 0 } };
}

function stuck(state: GoalState, cause: GoalCause): GoalState {
  return moving(concluded(state), { kind: 'paused', by: 'no_progress' }, cause, 'runtime');
}

/** Where there is nothing to wait for, the next round comes after the usual gap, and the brakes hold. */
function waiting(state: GoalState, awaited: AwaitedBy, cause: GoalCause): GoalState {
  if (awaited.untilMs !== null && awaited.untilMs <= state.atMs) return due(state);
  return moving(state, { kind: 'waiting', awaited }, cause, 'model');
}

/** No judge is asked for money that is not there. */
function within(state: GoalState): GoalState {
  const limit = goalLimitReached({ ...state, budget: { ...state.budget, turns: Number.POSITIVE_INFINITY } });
  if (!limit) return state;
  return moving(state, { kind: 'budget_limited', limit: limit.limit }, limit, 'runtime');
}

/** Same reply, no effect, same evidence: nothing has changed, and the gap before the next round doubles. */
function progressOf(state: GoalState, turn: JudgedTurn, evidence: string): GoalState {
  const { brakes } = state;
  const isSame = turn.reply === brakes.lastReply && !turn.acted && evidence === brakes.lastEvidence;
  const { gapMinMs, gapMaxMs } = POLICY.goal;
  return {
    ...state,
    brakes: {
      ...brakes,
      lastReply: turn.reply,
      lastEvidence: evidence,
      idleTurns: isSame ? brakes.idleTurns + 1 : 1,
      gapMs: isSame ? Math.min(brakes.gapMs * 2, gapMaxMs) : gapMinMs,
    },
  };
}

export function judged(state: GoalState, verdict: JudgeVerdict): GoalState {
  const now = judgingNow(state, 'judge');
  if (!now) return state;
  const { turn } = now;
  if (verdict.kind === 'unusable') return judgeFailed(state, now.stage, (next) => stage(state, turn, next));
  if (verdict.kind === 'unaffordable') return notEnough(state, now, verdict);
  const told = { ...state, verdict: verdict.verdict };
  switch (verdict.kind) {
    case 'continue':
      return goOnUnlessSame(concluded(told), verdict.gap);
    case 'candidate_complete':
      // The judge may not overrule what the goal's own checks have found.
      if (now.stage.checks === 'failed') return due(concluded(told));
      return within(stage(told, turn, { kind: 'doubt', approvals: 0, refutals: 0, failures: 0 }));
    case 'blocked':
      return blockedAgain(concluded(told), verdict.blocker);
    case 'waiting':
      return waiting(concluded(told), verdict.awaited, { name: 'judge' });
  }
}

/** What the request may cost at most is held back, so that no budget is overdrawn by judging. */
function notEnough(
  state: GoalState,
  now: AtJudging,
  { limit, needed }: Extract<JudgeVerdict, { readonly kind: 'unaffordable' }>,
): GoalState {
  if (heldOf(state, limit) > 0) return lent(state, limit, now);
  const { maxTokens, maxMicroUsd } = leftOf(state);
  const left = limit === 'tokens' ? maxTokens : (maxMicroUsd ?? 0);
  return moving(state, { kind: 'budget_limited', limit }, { name: 'reserve', limit, needed, left }, 'runtime');
}

type Trying = Extract<Judging, { readonly failures: number }>;

function judgeFailed(state: GoalState, at: Trying, again: (next: Trying) => GoalState): GoalState {
  const failures = at.failures + 1;
  if (failures < POLICY.goal.judgeTries) return again({ ...at, failures });
  return outage(state, { name: 'judge_failed', tries: failures });
}

function awayFor(state: GoalState): GoalState {
  return outage(state, { name: 'workspace_away' });
}

function outage(state: GoalState, cause: GoalCause): GoalState {
  const { wakeAfterMs } = POLICY.goal;
  const { outages } = state.brakes;
  const untilMs = state.atMs + (wakeAfterMs[Math.min(outages, wakeAfterMs.length - 1)] ?? 0);
  const counted = { ...state, brakes: { ...state.brakes, outages: outages + 1 } };
  return moving(counted, { kind: 'paused', by: 'infrastructure', untilMs }, cause, 'runtime');
}

function goOnUnlessSame(state: GoalState, gap: string): GoalState {
  const isSame = gap === state.brakes.lastGap;
  const next = { ...state, brakes: { ...state.brakes, lastGap: gap, lastBlocker: null, sameBlocker: 0 } };
  if (!isSame) return due(next);
  return stuck(next, { name: 'same_gap', times: 2 });
}

function blockedAgain(state: GoalState, blocker: string): GoalState {
  const { brakes } = state;
  const sameBlocker = blocker === brakes.lastBlocker ? brakes.sameBlocker + 1 : 1;
  const next = { ...state, brakes: { ...brakes, lastBlocker: blocker, sameBlocker } };
  if (sameBlocker < POLICY.goal.sameBlockers) return due(next);
  return moving(next, { kind: 'blocked', on: 'same_blocker' }, { name: 'judge' }, 'model');
}

/** The first refutal with high confidence rejects; else a strict majority of all that were asked approves. */
export function doubted(state: GoalState, vote: ScepticVote): GoalState {
  const now = judgingNow(state, 'doubt');
  if (!now) return state;
  const { turn } = now;
  if (vote.kind === 'unusable') return judgeFailed(state, now.stage, (next) => stage(state, turn, next));
  if (vote.kind === 'unaffordable') return notEnough(state, now, vote);
  if (vote.kind === 'refute' && vote.confidence === 'high') return due(concluded({ ...state, verdict: vote.verdict }));
  const approvals = now.stage.approvals + (vote.kind === 'approve' ? 1 : 0);
  const refutals = now.stage.refutals + (vote.kind === 'refute' ? 1 : 0);
  const told = vote.kind === 'refute' ? { ...state, verdict: vote.verdict } : state;
  if (approvals + refutals < state.sceptics)
    return within(stage(told, turn, { kind: 'doubt', approvals, refutals, failures: 0 }));
  return approvals * 2 > state.sceptics
    ? stage(told, turn, { kind: 'stop_gate', by: 'sceptics' })
    : due(concluded(told));
}

/** Who may object to a turn's end is asked once more before the goal is complete; an objection is the next directive. */
export function gated(state: GoalState, heard: GoalEvent & { readonly kind: 'gated' }): GoalState {
  const now = judgingNow(state, 'stop_gate');
  if (!now) return state;
  const { by } = now.stage;
  switch (heard.answer) {
    case 'pass':
      return moving(state, { kind: 'complete' }, { name: by }, by === 'checks' ? 'runtime' : 'model');
    case 'block':
      return due(concluded({ ...state, verdict: heard.verdict }));
    case 'away':
      return awayFor(state);
    case 'stop':
      return moving(concluded(state), { kind: 'paused', by: 'user' }, { name: 'stop_gate' }, 'runtime');
  }
}
