import { setTimeout as sleep } from 'node:timers/promises';
import { POLICY } from '../../workflows/core/policy.ts';
import { recordEvents } from '../store/events.ts';
import type { EffectRow } from '../store/ledger.ts';
import type { Reconciled } from '../tools/define-tool.ts';
import { giveUpUnlessCancelled } from './call-outcome.ts';
import { stopSignal, type ToolAttempt, toolContext } from './tool-attempt.ts';

/** An attempt that can't act any more, and whose outcome nobody has told. */
export interface Lost {
  readonly attempt: string | null;
  /** What the tool noted before it acted. */
  readonly details: unknown;
  /** Since when it surely can't act, ms since the epoch. What it sent may still be on its way. */
  readonly overSinceMs: number;
  /** What it had shown until then. */
  readonly shown: string | null;
}

/**
 * Asks the other side whether a lost attempt has happened. `done` counts at once. `absent` counts only when it
 * is asked after the tool's `settleAfterMs`: until then the request may still arrive, and is asked for again.
 */
export async function settle(at: ToolAttempt, lost: Lost): Promise<Reconciled> {
  if (!at.tool.reconcile) return { kind: 'unknown' };
  const settledAtMs = lost.overSinceMs + at.tool.settleAfterMs;
  for (
    let waitMs: number = POLICY.effects.askAgainAfterMs;
    ;
    waitMs = Math.min(waitMs * 2, POLICY.effects.askAgainMaxMs)
  ) {
    const askedAtMs = Date.now();
    const told = await ask(at, lost.details);
    if (told.kind === 'done' || askedAtMs >= settledAtMs) return told;
    await pause(at, Math.min(waitMs, settledAtMs - askedAtMs));
  }
}

async function ask(at: ToolAttempt, details: unknown): Promise<Reconciled> {
  const signal = AbortSignal.timeout(POLICY.effects.askLimitMs);
  try {
    return (await at.tool.reconcile?.(at.args, toolContext(at, signal, details, null))) ?? { kind: 'unknown' };
  } catch {
    return { kind: 'unknown' };
  }
}

/** A cancel does not shorten it: what is asked for then is the truth about what has happened. */
export async function pause(at: ToolAttempt, ms: number): Promise<void> {
  const signal = stopSignal(at);
  await sleep(ms, undefined, signal.aborted ? {} : { signal }).catch(() => {});
  if (signal.aborted) giveUpUnlessCancelled(at.superseded);
}

/** A process was lost and another goes on. */
export async function recordLost(at: ToolAttempt, row: EffectRow): Promise<void> {
  const lost = row.attempt ?? 'unnamed';
  const events = [
    ['attempt.lost', `lost/${lost}`, lost],
    ['attempt.resumed', `resumed/${at.attempt}`, at.attempt],
  ] as const;
  await recordEvents(
    at.deps.database.db,
    at.owner.session,
    events.map(([kind, key, attempt]) => ({
      key,
      turn: at.owner.id,
      event: { kind, layer: 'batch', key: at.call.key, attempt },
    })),
  );
}

/** Told once, though whoever settles it may be lost as well, and the next one asks again. */
export async function recordSettled(
  at: ToolAttempt,
  lost: Lost,
  as: 'settled_done' | 'settled_absent' | 'unknown',
): Promise<void> {
  await recordEvents(at.deps.database.db, at.owner.session, [
    {
      key: `settled/${lost.attempt ?? at.call.key}/${as}`,
      turn: at.owner.id,
      event: { kind: 'effect.settled', layer: 'batch', key: at.call.key, as, by: 'reconcile' },
    },
  ]);
}
