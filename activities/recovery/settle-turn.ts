import { and, eq, isNull } from 'drizzle-orm';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Deps } from '../deps.ts';
import { isGone } from '../process/identity.ts';
import { sha256 } from '../store/hash.ts';
import type { FencedTurn } from '../store/fence.ts';
import type { TurnOwner } from '../store/owners.ts';
import {
  type EffectRow,
  finishCall,
  leaseRemainingMs,
  readCall,
  settleEffect,
  unsettledEffects,
} from '../store/ledger.ts';
import { closeLostAttempts } from '../store/samples.ts';
import { usage } from '../store/schema.ts';
import type { Reconciled } from '../tools/define-tool.ts';
import { parseArguments } from '../tools/parse-arguments.ts';
import { callReport } from '../reports/call-report.ts';
import { CUT_TEXTS } from '../turn/results.ts';
import { type CallOutcome, failed, returned } from '../turn/call-outcome.ts';

/** Writes down what a dead turn left: lost streams get their end, effects are settled as far as anybody can tell. */
export async function settleTurn(deps: Deps, owner: FencedTurn): Promise<void> {
  await closeStreams(deps, owner);
  for (const row of await unsettledEffects(deps.database.db, owner.id)) {
    if (row.state === 'intended') continue;
    if (row.state === 'started' && !(await isDead(deps, row))) continue;
    await settle(deps, owner, row, 'recovery');
  }
}

async function closeStreams(deps: Deps, owner: FencedTurn): Promise<void> {
  const { db } = deps.database;
  const open = await db
    .selectDistinct({ sample: usage.sample })
    .from(usage)
    .where(and(eq(usage.turn, owner.id), isNull(usage.closedAt)));
  for (const { sample } of open) {
    await closeLostAttempts(db, { turn: owner.id, session: owner.session, sample, mine: null });
  }
}

export async function isDead(deps: Deps, row: EffectRow): Promise<boolean> {
  const here = row.host === deps.host.host && row.boot === deps.host.boot;
  if (here && row.pid !== null && isGone({ pid: row.pid, started: row.pidStarted ?? '' })) return true;
  return (await leaseRemainingMs(deps.database.db, row.key)) === 0;
}

/** What settling needs to know of the turn. */
type EffectOwner = Pick<TurnOwner, 'id' | 'session' | 'tenant' | 'workspacePath'>;

/** Who settles: recovery, or a turn that cleans up. */
type By = 'recovery' | 'reconcile';

/**
 * Asks once more what became of an effect that can't act any more. Where the model was told that nobody knows, the
 * transcript keeps that, and the ledger learns better.
 */
export async function settleAnew(deps: Deps, owner: EffectOwner, row: EffectRow, by: By): Promise<void> {
  const { db } = deps.database;
  const stored = await readCall(db, row.key);
  if (!stored?.call.status) return await settle(deps, owner, row, by);
  const told = await reconcile(deps, owner, row);
  if (told.kind === 'unknown') return;
  const as = told.kind === 'done' ? 'settled_done' : 'settled_absent';
  await settleEffect(db, { key: row.key, turn: owner.id, session: owner.session, from: row.state }, as, {
    key: `settled/late/${row.key}`,
    turn: owner.id,
    event: { kind: 'effect.settled', layer: 'batch', key: row.key, as, by },
  });
}

async function settle(deps: Deps, owner: EffectOwner, row: EffectRow, by: By): Promise<void> {
  const found = await reconcile(deps, owner, row);
  const outcome: CallOutcome =
    found.kind === 'done'
      ? returned(found.result, 'settled_done')
      : found.kind === 'absent'
        ? { status: 'stopped', result: failed(CUT_TEXTS.stopped, 'absent'), effect: 'settled_absent' }
        : { status: 'unknown', result: failed(CUT_TEXTS.unknown, 'unknown_outcome'), effect: 'unknown' };
  const { result } = outcome;
  const output = result.output ? deps.masker.bytes(result.output) : null;
  await finishCall(deps.database.db, {
    turn: owner.id,
    session: owner.session,
    tenant: owner.tenant,
    key: row.key,
    tool: row.tool,
    status: outcome.status,
    text: deps.masker.text(result.text),
    output: output && { hash: sha256(owner.tenant, output), data: output },
    note: result.note ?? null,
    effect: outcome.effect === null ? null : { state: outcome.effect, attempt: row.attempt, isCut: false },
    events: [
      {
        key: `settled/recovery/${row.key}`,
        turn: owner.id,
        event: {
          kind: 'effect.settled',
          layer: 'batch',
          key: row.key,
          as: outcome.effect === 'settled_done' || outcome.effect === 'settled_absent' ? outcome.effect : 'unknown',
          by,
        },
      },
    ],
    report: callReport(deps.hooks, { session: owner.session, turn: owner.id, call: row, status: outcome.status }),
  });
  deps.reporter.wake();
}

async function reconcile(deps: Deps, owner: EffectOwner, row: EffectRow): Promise<Reconciled> {
  const found = deps.tools.lookup(row.tool);
  const stored = await readCall(deps.database.db, row.key);
  if (!found.ok || !found.tool.reconcile || !stored) return { kind: 'unknown' };
  const parsed = parseArguments(found.tool, stored.call.arguments);
  if (!parsed.ok) return { kind: 'unknown' };
  try {
    const told = await found.tool.reconcile(parsed.args, {
      workspace: owner.workspacePath,
      signal: AbortSignal.timeout(POLICY.cleanup.deadlineMs),
      idempotencyKey: row.key,
      details: row.details,
      spawn: () => Promise.reject(new Error('recovery starts no processes')),
      resultChars: POLICY.tools.resultChars,
    });
    return told.kind === 'absent' && !isSettled(row, found.tool.settleAfterMs) ? { kind: 'unknown' } : told;
  } catch {
    return { kind: 'unknown' };
  }
}

/** Whether what the attempt had sent must have arrived by now; it sent nothing after its lease. */
function isSettled({ leaseUntil }: EffectRow, settleAfterMs: number): boolean {
  return settleAfterMs === 0 || Date.now() > (leaseUntil?.getTime() ?? 0) + settleAfterMs;
}
