import { Context } from '@temporalio/activity';
import { POLICY } from '../../workflows/core/policy.ts';
import type { RunIdentity } from '../../workflows/core/requests.ts';
import type { OutcomeAsked } from '../../workflows/core/tools.ts';
import { DEFAULT_PERMISSIONS } from '../gate/permissions.ts';
import { agentOf } from '../store/definitions.ts';
import { newId } from '../store/ids.ts';
import { type EffectRow, readCall, startEffect } from '../store/ledger.ts';
import { askOutcome } from '../store/outcomes.ts';
import { hear } from './answered-outcome.ts';
import { type CallOutcome, failed, giveUpUnlessCancelled, returned } from './call-outcome.ts';
import { awaitDeath } from './prove-dead.ts';
import { refusalInPlan, refuseInPlan } from './plan-refusal.ts';
import { CUT_TEXTS } from './results.ts';
import { type Lost, pause, recordLost, recordSettled, settle } from './settle.ts';
import { type Attempted, attemptRun, isStopped, LEASE_MS, type ToolAttempt, toolContext } from './tool-attempt.ts';

/** Where a call stands: decided, or lost by an attempt and to be decided. */
type Standing =
  | { readonly kind: 'outcome'; readonly outcome: CallOutcome }
  /** Nobody knows, and a person is asked: the call goes on when they have answered. */
  | { readonly kind: 'asked'; readonly asked: OutcomeAsked }
  | { readonly kind: 'lost'; readonly lost: Lost }
  /** Known not to have happened, or safe to repeat: `from` is who holds it in the ledger. */
  | { readonly kind: 'send'; readonly from: string | null; readonly mayInPlan: boolean }
  /** The session began to plan before anything was done. */
  | { readonly kind: 'planning' };

/** A call that changes something: marked in the ledger before it acts, and never sent again on a guess. */
export async function runActing(
  first: ToolAttempt,
  fence: RunIdentity,
  row: EffectRow,
): Promise<CallOutcome | OutcomeAsked | 'denied'> {
  let at = first;
  let sends = 0;
  let standing = await standingOf(at, row);
  for (;;) {
    switch (standing.kind) {
      case 'outcome':
        return standing.outcome;
      case 'asked':
        return standing.asked;
      case 'lost':
        standing = await afterLoss(at, fence, standing.lost, sends);
        break;
      case 'send':
        // Each request has an attempt of its own, so that the ledger and the events tell them apart.
        if (sends > 0) at = { ...first, attempt: newId('att') };
        sends += 1;
        standing = await send(at, fence, standing);
        break;
      case 'planning': {
        const refusal = await refusalInPlan(at);
        if (refusal !== null) return await refuseInPlan(at, fence, refusal);
        sends = 0;
        standing = { kind: 'send', from: null, mayInPlan: true };
      }
    }
  }
}

async function standingOf(at: ToolAttempt, row: EffectRow): Promise<Standing> {
  if (row.state === 'intended') return { kind: 'send', from: null, mayInPlan: false };
  const heard = row.state === 'unknown' ? await hear(at, row.attempt) : null;
  if (heard === 'again') {
    await awaitDeath(at, row);
    return { kind: 'send', from: row.attempt, mayInPlan: false };
  }
  return heard ?? { kind: 'lost', lost: await takeOver(at, row) };
}

/** Another process had it: it must be dead, or its lease over, before anybody looks at what it left. */
async function takeOver(at: ToolAttempt, row: EffectRow): Promise<Lost> {
  await awaitDeath(at, row);
  const overSinceMs = Date.now();
  await recordLost(at, row);
  return { attempt: row.attempt, details: row.details, overSinceMs, shown: null };
}

async function send(
  at: ToolAttempt,
  fence: RunIdentity,
  { from, mayInPlan }: Standing & { kind: 'send' },
): Promise<Standing> {
  const { deps } = at;
  const signal = Context.current().cancellationSignal;
  const details = (await at.tool.prepare?.(at.args, toolContext(at, signal, null, null))) ?? null;
  const leasedAtMs = Date.now();
  const started = await startEffect(
    deps.database.db,
    { fence, key: at.call.key, from, details, mayInPlan },
    { attempt: at.attempt, host: deps.host, process: deps.process, leaseMs: LEASE_MS },
  );
  if (started === 'planning') return { kind: 'planning' };
  if (started === 'held') return await found(at);
  return judge(at, await attemptRun(at, details, leasedAtMs), details);
}

/** Somebody else marked it first: look at what they left. */
async function found(at: ToolAttempt): Promise<Standing> {
  const row = await readCall(at.deps.database.db, at.call.key);
  if (!row?.effect) throw new Error('an effect vanished from the ledger');
  const { status, result, note } = row.call;
  if (!status) return { kind: 'lost', lost: await takeOver(at, row.effect) };
  const outcome = { status, result: failed(result ?? '', note ?? ''), effect: row.effect.state };
  return { kind: 'outcome', outcome: { ...outcome, heldBy: row.effect.attempt } };
}

/** What one attempt shows of the call's outcome. */
function judge(at: ToolAttempt, attempted: Attempted, details: unknown): Standing {
  const outcome = (decided: CallOutcome): Standing => ({
    kind: 'outcome',
    outcome: { ...decided, heldBy: at.attempt },
  });
  if (attempted.kind === 'result' && !attempted.result.aborted) {
    return outcome(returned(attempted.result, attempted.result.isError ? 'failed' : 'succeeded'));
  }
  const stopped = isStopped(at);
  if (stopped) giveUpUnlessCancelled(at.superseded);
  if (attempted.kind === 'result' && attempted.result.aborted === 'without_effect') return outcome(without('stopped'));
  if (at.call.effect === 'idempotent' && attempted.kind !== 'result' && !stopped) {
    const note = attempted.kind === 'threw' ? attempted.note : 'timeout';
    return outcome(returned(failed('The tool failed. Calling it again does no harm.', note), 'failed'));
  }
  const shown = attempted.kind === 'result' ? attempted.result.text : null;
  return { kind: 'lost', lost: { attempt: at.attempt, details, overSinceMs: Date.now(), shown } };
}

/**
 * Nobody has told what became of an attempt. Only the effect's class and the other side decide what follows;
 * the class as it was when the call was asked for: no deploy turns `once` into `idempotent` for a call in flight.
 */
async function afterLoss(at: ToolAttempt, fence: RunIdentity, lost: Lost, sends: number): Promise<Standing> {
  const { effect } = at.call;
  const again: Standing = { kind: 'send', from: lost.attempt, mayInPlan: false };
  const settled = (outcome: CallOutcome): Standing => ({
    kind: 'outcome',
    outcome: { ...outcome, heldBy: lost.attempt },
  });
  if (effect !== 'once') {
    const mayRepeat = sends < POLICY.effects.sends && !isStopped(at);
    if (mayRepeat && sends > 0) await pause(at, POLICY.effects.sendAgainAfterMs * sends);
    return mayRepeat ? again : await unknown(at, fence, lost);
  }
  const told = await settle(at, lost);
  switch (told.kind) {
    case 'done':
      await recordSettled(at, lost, 'settled_done');
      return settled(returned(told.result, 'settled_done'));
    case 'absent':
      await recordSettled(at, lost, 'settled_absent');
      if (isStopped(at)) return settled(without('stopped'));
      return sends < POLICY.effects.sends ? again : settled(without('error'));
    case 'unknown':
      await recordSettled(at, lost, 'unknown');
      return await unknown(at, fence, lost);
  }
}

function without(status: 'stopped' | 'error'): CallOutcome {
  return status === 'stopped'
    ? { status, result: failed(CUT_TEXTS.stopped, 'cancelled'), effect: 'settled_absent' }
    : { status, result: failed(CUT_TEXTS.absent, 'absent'), effect: 'settled_absent' };
}

/** Nobody knows. The tool says what then: tell the model the truth, ask a person, or end the turn on it. */
async function unknown(at: ToolAttempt, fence: RunIdentity, { attempt, shown }: Lost): Promise<Standing> {
  const text = shown ? `${CUT_TEXTS.unknown}\nOutput until then:\n${shown}` : CUT_TEXTS.unknown;
  const told = { result: failed(text, 'unknown_outcome'), effect: 'unknown', heldBy: attempt } as const;
  if (at.tool.onUnknown === 'tell' || isStopped(at) || attempt === null) {
    return { kind: 'outcome', outcome: { ...told, status: 'unknown' } };
  }
  const waitMs = at.tool.onUnknown === 'ask' ? await askableMs(at) : 0;
  const lost = { turn: at.owner.id, session: at.owner.session, call: at.call, attempt };
  if (!(await askOutcome(at.deps.database.db, fence, lost, waitMs))) return await found(at);
  at.deps.notifier.moved(at.owner.stream);
  const heard = waitMs > 0 ? await hear(at, attempt) : null;
  if (heard === 'again') return { kind: 'send', from: attempt, mayInPlan: false };
  return heard ?? { kind: 'outcome', outcome: { ...told, status: 'unknown_ends_turn' } };
}

/** How long a person may take to answer within the turn, ms; 0 where there is nobody to be asked. */
async function askableMs({ deps, owner }: ToolAttempt): Promise<number> {
  const { attended, permissions = DEFAULT_PERMISSIONS } = await agentOf(deps.database.db, owner.agent);
  return attended || permissions.approvers ? permissions.expiryMs : 0;
}
