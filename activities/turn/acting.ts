import { Context } from '@temporalio/activity';
import { POLICY } from '../../workflows/core/policy.ts';
import type { RunIdentity } from '../../workflows/core/requests.ts';
import type { Deps } from '../deps.ts';
import { recordEvents } from '../store/events.ts';
import { type EffectRow, readCall, startEffect } from '../store/ledger.ts';
import type { Reconciled } from '../tools/define-tool.ts';
import { CUT_TEXTS } from './results.ts';
import { type CallOutcome, failed, giveUpUnlessCancelled, returned } from './call-outcome.ts';
import { type Attempted, attemptRun, LEASE_MS, type ToolAttempt, toolContext } from './tool-attempt.ts';
import { awaitDeath } from './prove-dead.ts';

/** A call that changes something: marked in the ledger before it acts, reconciled where an attempt was lost. */
export async function runActing(at: ToolAttempt, fence: RunIdentity, row: EffectRow): Promise<CallOutcome> {
  if (row.state === 'intended') return await begin(at, fence, null);
  await awaitDeath(at, row);
  await recordLost(at.deps, at, row);
  if (at.tool.effect === 'idempotent' || at.tool.effect === 'keyed') return await begin(at, fence, row.attempt);
  return await settle(at, fence, row);
}

async function begin(at: ToolAttempt, fence: RunIdentity, from: string | null): Promise<CallOutcome> {
  const { deps } = at;
  const signal = Context.current().cancellationSignal;
  const details = (await at.tool.prepare?.(at.args, toolContext(at, signal, null, false))) ?? null;
  const started = await startEffect(
    deps.database.db,
    { fence, key: at.call.key, from, details },
    { attempt: at.attempt, host: deps.host, process: deps.process, leaseMs: LEASE_MS },
  );
  if (!started) return await again(at, fence);
  return await judge(at, await attemptRun(at, details, true), details);
}

/** Somebody else marked it first: look at what they left. */
async function again(at: ToolAttempt, fence: RunIdentity): Promise<CallOutcome> {
  const row = await readCall(at.deps.database.db, at.call.key);
  if (!row?.effect) throw new Error('an effect vanished from the ledger');
  if (row.call.status) {
    return {
      status: row.call.status,
      result: failed(row.call.result ?? '', row.call.note ?? ''),
      effect: row.effect.state,
    };
  }
  return await runActing(at, fence, row.effect);
}

async function judge(at: ToolAttempt, attempted: Attempted, details: unknown): Promise<CallOutcome> {
  const stopped = Context.current().cancellationSignal.aborted;
  if (attempted.kind === 'result' && !attempted.result.aborted) {
    return returned(attempted.result, attempted.result.isError ? 'failed' : 'succeeded');
  }
  if (stopped) giveUpUnlessCancelled();
  if (attempted.kind === 'result' && attempted.result.aborted === 'without_effect') {
    return { status: 'stopped', result: failed(CUT_TEXTS.stopped, 'cancelled'), effect: 'settled_absent' };
  }
  if (at.tool.effect === 'idempotent' && attempted.kind === 'threw' && !stopped) {
    return returned(failed('The tool failed.', attempted.note), 'failed');
  }
  const found = await ask(at, details);
  if (found.kind === 'done') return returned(found.result, 'settled_done');
  return unknown(at, attempted.kind === 'result' ? attempted.result.text : null);
}

/** After a lost attempt of a `once` effect: the remote side is asked, nothing is sent again blindly. */
async function settle(at: ToolAttempt, fence: RunIdentity, row: EffectRow): Promise<CallOutcome> {
  const found = await ask(at, row.details);
  switch (found.kind) {
    case 'done':
      await recordSettled(at, row, 'settled_done');
      return { ...returned(found.result, 'settled_done'), heldBy: row.attempt };
    case 'absent':
      await recordSettled(at, row, 'settled_absent');
      return await begin(at, fence, row.attempt);
    case 'unknown':
      await recordSettled(at, row, 'unknown');
      return { ...unknown(at, null), heldBy: row.attempt };
  }
}

async function ask(at: ToolAttempt, details: unknown): Promise<Reconciled> {
  if (!at.tool.reconcile) return { kind: 'unknown' };
  const signal = AbortSignal.timeout(POLICY.cleanup.deadlineMs);
  try {
    return await at.tool.reconcile(at.args, toolContext(at, signal, details, false));
  } catch {
    return { kind: 'unknown' };
  }
}

/** Nobody knows. The tool says what then: tell the model the truth, or end the turn on it. */
function unknown(at: ToolAttempt, shown: string | null): CallOutcome {
  const text = shown ? `${CUT_TEXTS.unknown}\nOutput until then:\n${shown}` : CUT_TEXTS.unknown;
  const tells = at.tool.onUnknown === 'tell' || Context.current().cancellationSignal.aborted;
  return {
    status: tells ? 'unknown' : 'unknown_ends_turn',
    result: failed(text, 'unknown_outcome'),
    effect: 'unknown',
  };
}

async function recordLost(deps: Deps, at: ToolAttempt, row: EffectRow): Promise<void> {
  const lost = row.attempt ?? 'unnamed';
  const events = [
    ['attempt.lost', `lost/${lost}`, lost],
    ['attempt.resumed', `resumed/${at.attempt}`, at.attempt],
  ] as const;
  await recordEvents(
    deps.database.db,
    at.owner.session,
    events.map(([kind, key, attempt]) => ({
      key,
      turn: at.owner.id,
      event: { kind, layer: 'batch', key: at.call.key, attempt },
    })),
  );
}

/** Once for each lost attempt, though whoever settles it may be lost as well. */
async function recordSettled(
  at: ToolAttempt,
  row: EffectRow,
  as: 'settled_done' | 'settled_absent' | 'unknown',
): Promise<void> {
  await recordEvents(at.deps.database.db, at.owner.session, [
    {
      key: `settled/${row.attempt ?? row.key}`,
      turn: at.owner.id,
      event: { kind: 'effect.settled', layer: 'batch', key: at.call.key, as, by: 'reconcile' },
    },
  ]);
}
