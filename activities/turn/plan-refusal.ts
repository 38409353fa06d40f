import type { RunIdentity } from '../../workflows/core/requests.ts';
import { judgePlan } from '../gate/judge.ts';
import { denialReport } from '../reports/call-report.ts';
import { deniedEvent, refuseCalls } from '../store/approvals.ts';
import { recordEvents } from '../store/events.ts';
import { lockTurn } from '../store/fence.ts';
import { storeReports } from '../store/reports.ts';
import { planOf } from './guards.ts';
import type { ToolAttempt } from './tool-attempt.ts';

/** What the model is told of a call that a planning session may not make; null: it may. Reads the workspace. */
export async function refusalInPlan({ tool, call, owner }: ToolAttempt): Promise<string | null> {
  const judged = { tool, effect: call.effect, args: call.arguments };
  const refusal = await judgePlan(judged, { workspace: owner.workspacePath, plan: planOf(true) });
  return refusal?.text ?? null;
}

/** The session began to plan after the call was let through and before it began: it does not begin. */
export async function refuseInPlan(at: ToolAttempt, fence: RunIdentity, text: string): Promise<'denied'> {
  const { deps, owner, call } = at;
  await deps.database.db.transaction(async (tx) => {
    await lockTurn(tx, fence);
    await refuseCalls(tx, [call.key], { status: 'denied', text, note: 'plan' });
    const report = denialReport(deps.hooks, { session: owner.session, turn: owner.id, call }, 'plan');
    if (report) await storeReports(tx, [report]);
    await recordEvents(tx, owner.session, [deniedEvent(owner.id, call.key, call.tool, 'plan')]);
  });
  deps.notifier.moved(owner.stream);
  deps.reporter.wake();
  return 'denied';
}
