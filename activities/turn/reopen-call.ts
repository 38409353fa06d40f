import { ApplicationFailure } from '@temporalio/common';
import { and, eq } from 'drizzle-orm';
import type { RunIdentity } from '../../workflows/core/requests.ts';
import type { Deps } from '../deps.ts';
import { deniedEvent, markSettled, refuseCalls } from '../store/approvals.ts';
import type { Tx } from '../store/database.ts';
import { recordEvents } from '../store/events.ts';
import { storeReports } from '../store/reports.ts';
import { denialReport } from '../reports/call-report.ts';
import { lockTurn } from '../store/fence.ts';
import type { CallRow, EffectRow } from '../store/ledger.ts';
import type { TurnOwner } from '../store/owners.ts';
import { approval, call, effect, turn } from '../store/schema.ts';
import { changeArguments } from './change-arguments.ts';
import { judgeYes, TEXTS, type Yes } from './settle-approval.ts';

/**
 * A call that an earlier turn asked for runs only for the turn that its late yes has opened: judged once more on the
 * arguments that will run, and only if the ledger still has it as intended. One that is refused has its result afterwards.
 */
export async function reopenCall(
  deps: Deps,
  owner: TurnOwner,
  fence: RunIdentity,
  row: { readonly call: CallRow; readonly effect: EffectRow | null },
): Promise<void> {
  const { db } = deps.database;
  // It has begun: what became of it is no longer a question of who allowed it.
  if (row.effect && row.effect.state !== 'intended') return;
  const yes = await lateYes(deps, owner, row.call.key);
  const judged = await judgeYes(deps, owner, yes);
  await db.transaction(async (tx) => {
    await lockTurn(tx, fence);
    const denied = denialOf(judged);
    await markSettled(tx, yes);
    if (!denied && (await reopen(tx, owner, row, yes))) return;
    const { by, text } = denied ?? { by: 'policy' as const, text: NOT_AS_IT_WAS };
    await refuseCalls(tx, [row.call.key], { status: 'denied', text, note: by });
    const report = denialReport(deps.hooks, { session: owner.session, turn: owner.id, call: row.call }, by);
    if (report) await storeReports(tx, [report]);
    await recordEvents(tx, owner.session, [deniedEvent(owner.id, row.call.key, row.call.tool, by)]);
  });
  deps.notifier.moved(owner.stream);
  deps.reporter.wake();
}

const NOT_AS_IT_WAS = 'The call had been settled meanwhile, so it did not run.';

/** The approval that opened this turn, and no other. */
async function lateYes(deps: Deps, owner: TurnOwner, key: string): Promise<string> {
  const [found] = await deps.database.db
    .select({ id: approval.id })
    .from(approval)
    .innerJoin(turn, eq(turn.input, approval.input))
    .where(and(eq(approval.call, key), eq(approval.answer, 'approved'), eq(turn.id, owner.id)));
  if (!found)
    throw ApplicationFailure.nonRetryable('Nobody has approved this call for this turn.', 'tool.not_approved');
  return found.id;
}

function denialOf(judged: Yes | null) {
  if (judged === null || judged === 'tool_gone') return { by: 'policy' as const, text: TEXTS.gone };
  return judged.judgement.kind === 'denied' ? judged.judgement : null;
}

/** The call is open again, with its final arguments, and what it does is now this turn's. */
async function reopen(
  tx: Tx,
  owner: TurnOwner,
  row: { readonly call: CallRow; readonly effect: EffectRow | null },
  yes: string,
): Promise<boolean> {
  const { key } = row.call;
  if (row.effect) {
    const taken = await tx
      .update(effect)
      .set({ turn: owner.id })
      .where(and(eq(effect.key, key), eq(effect.state, 'intended')))
      .returning({ key: effect.key });
    if (taken.length === 0) return false;
  }
  await tx
    .update(call)
    .set({ status: null, result: null, note: null })
    .where(and(eq(call.key, key), eq(call.status, 'blocked_on_approval')));
  const [answered] = await tx.select().from(approval).where(eq(approval.id, yes));
  await changeArguments(tx, row.call, answered?.editedArguments ?? null);
  return true;
}
