import { Context } from '@temporalio/activity';
import { eq } from 'drizzle-orm';
import type { Decision } from '../../workflows/core/gate.ts';
import type { DecisionRequest } from '../../workflows/core/requests.ts';
import type { Deps } from '../deps.ts';
import { type Cleared, type Denied, judgeApproved } from '../gate/judge.ts';
import {
  answeredEvent,
  type ApprovalRow,
  closeIfExpired,
  laterCalls,
  markSettled,
  refuseCalls,
} from '../store/approvals.ts';
import type { Tx } from '../store/database.ts';
import { type NewEvent, recordEvents } from '../store/events.ts';
import { enterRun, lockTurn } from '../store/fence.ts';
import { type CallRow, readCall } from '../store/ledger.ts';
import { ownerOf, type TurnOwner } from '../store/owners.ts';
import { approval, call } from '../store/schema.ts';
import type { Tool } from '../tools/define-tool.ts';
import { parseArguments } from '../tools/parse-arguments.ts';
import { refOf } from './call-ref.ts';
import { changeArguments } from './change-arguments.ts';
import { findTool } from './find-tool.ts';
import { denied } from './gate-call.ts';
import { guardsOf } from './guards.ts';
import { confirmRun, knownRuns } from './runs.ts';

/**
 * What the answer in the store means. A yes is judged once more, on the arguments that will run: plan and rules
 * may have changed in the days between, and a tool that is gone never runs. A no can't reach the way that runs.
 */
export async function settleApproval(deps: Deps, request: DecisionRequest): Promise<Decision> {
  const { db } = deps.database;
  await enterRun(db, request.fence, knownRuns, confirmRun(deps));
  const owner = await ownerOf(db, request.fence.turn);
  const judged = await judgeYes(deps, owner, request.approval);
  const decision = await db.transaction(async (tx) => {
    await lockTurn(tx, request.fence);
    const { row, isNew } = await closeIfExpired(tx, request.approval);
    const [stored] = await tx.select().from(call).where(eq(call.key, row.call));
    if (!stored) throw new Error('the call of an approval is not in the store');
    const settled = await settle(tx, { row, stored, owner, judged });
    if (settled.decision.kind !== 'pending') await markSettled(tx, row.id);
    const expiry = isNew ? [answeredEvent(row.id, row.call, owner.id, 'expired', null)] : [];
    await recordEvents(tx, owner.session, [...expiry, ...settled.events]);
    return settled.decision;
  });
  deps.notifier.moved(owner.stream);
  return decision;
}

type Yes = { readonly tool: Tool; readonly judgement: Cleared | Denied } | 'tool_gone';

/** Only a yes is judged; reading the workspace must not happen inside a transaction. Null: there was none yet. */
async function judgeYes(deps: Deps, owner: TurnOwner, id: string): Promise<Yes | null> {
  const { db } = deps.database;
  const [row] = await db.select().from(approval).where(eq(approval.id, id));
  if (row?.answer !== 'approved') return null;
  const stored = await readCall(db, row.call);
  const found = await findTool(deps, row.asked.tool);
  if (!stored || !found.ok) return 'tool_gone';
  const guards = await guardsOf(deps, owner, Context.current().cancellationSignal);
  const asked = { tool: found.tool, effect: stored.call.effect, args: row.asked.arguments };
  return { tool: found.tool, judgement: await judgeApproved(asked, row.editedArguments, guards) };
}

interface Settling {
  readonly row: ApprovalRow;
  readonly stored: CallRow;
  readonly owner: TurnOwner;
  readonly judged: Yes | null;
}

interface Settled {
  readonly decision: Decision;
  readonly events: readonly NewEvent[];
}

async function settle(tx: Tx, at: Settling): Promise<Settled> {
  const { row, stored, owner } = at;
  switch (row.answer) {
    case null:
      return { decision: { kind: 'pending', untilMs: row.expiresAt.getTime() }, events: [] };
    case 'approved':
      return await settleYes(tx, at);
    case 'expired':
      if (row.asked.onExpiry === 'block') return await stop(tx, at, 'expired', { kind: 'expired' });
      return await refuse(tx, stored, owner, { by: 'policy', text: TEXTS.expired });
    case 'message':
      if (row.input === null) return await stop(tx, at, 'rejected', { kind: 'rejected' });
      return await stop(tx, at, 'message', { kind: 'message', input: row.input });
    case 'rejected':
    case 'cancelled':
      return await stop(tx, at, row.answer, { kind: row.answer });
  }
}

async function settleYes(tx: Tx, { row, stored, owner, judged }: Settling): Promise<Settled> {
  // It came between the look and the lock: look again.
  if (judged === null) return { decision: { kind: 'pending', untilMs: 0 }, events: [] };
  if (judged === 'tool_gone') return await refuse(tx, stored, owner, { by: 'policy', text: TEXTS.gone });
  const { tool, judgement } = judged;
  if (judgement.kind === 'denied') return await refuse(tx, stored, owner, judgement);
  const parsed = parseArguments(tool, judgement.args ?? row.asked.arguments);
  if (!parsed.ok) return await refuse(tx, stored, owner, { by: 'arguments', text: parsed.text });
  await changeArguments(tx, stored, row.editedArguments);
  return { decision: { kind: 'approved', ref: refOf(owner.id, tool, stored.ordinal, parsed, 'run') }, events: [] };
}

/** Data for the model; the turn goes on. */
async function refuse(
  tx: Tx,
  stored: CallRow,
  owner: TurnOwner,
  { by, text }: Pick<Denied, 'by' | 'text'>,
): Promise<Settled> {
  await refuseCalls(tx, [stored.key], { status: 'denied', text, note: by });
  return { decision: { kind: 'denied' }, events: [denied(owner.id, stored, by)] };
}

/** The fuse: this call and everything after it in the batch never start, and each result names the cause. */
async function stop(
  tx: Tx,
  { stored, owner }: Settling,
  cause: Exclude<keyof typeof TEXTS, 'gone'>,
  decision: Decision,
): Promise<Settled> {
  await refuseCalls(tx, [stored.key], { status: 'denied', text: TEXTS[cause], note: cause });
  await refuseCalls(tx, await laterCalls(tx, stored.key), { status: 'fused', text: FUSED[cause], note: cause });
  return { decision, events: [denied(owner.id, stored, 'person')] };
}

const TEXTS = {
  rejected: 'A person rejected this call. It did not run.',
  cancelled: 'A person cancelled here. The call did not run.',
  message: 'A person answered with a message instead of letting this call run; the message follows. It did not run.',
  expired: 'Nobody approved this call in time. It did not run.',
  gone: 'This tool no longer exists, so the approved call did not run.',
} as const;

const FUSED: Readonly<Record<Exclude<keyof typeof TEXTS, 'gone'>, string>> = {
  rejected: 'Not started: a person rejected an earlier call of this batch.',
  cancelled: 'Not started: a person cancelled at an earlier call of this batch.',
  message: 'Not started: a person answered an earlier call of this batch with a message, which follows.',
  expired: 'Not started: nobody approved an earlier call of this batch in time.',
};
