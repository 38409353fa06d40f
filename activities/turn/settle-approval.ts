import { Context } from '@temporalio/activity';
import { and, eq } from 'drizzle-orm';
import type { Decision } from '../../workflows/core/gate.ts';
import type { DecisionRequest } from '../../workflows/core/requests.ts';
import type { Deps } from '../deps.ts';
import type { Hooks } from '../gate/hooks.ts';
import { type Cleared, type Denied, judgeApproved } from '../gate/judge.ts';
import {
  answeredEvent,
  closeIfExpired,
  deniedEvent,
  keepWaiting,
  laterCalls,
  type LockedApproval,
  markSettled,
  refuseCalls,
  writeAnswer,
} from '../store/approvals.ts';
import type { Tx } from '../store/database.ts';
import { type NewEvent, recordEvents } from '../store/events.ts';
import { enterRun, lockTurn } from '../store/fence.ts';
import { type CallRow, readCall } from '../store/ledger.ts';
import { ownerOf, type TurnOwner } from '../store/owners.ts';
import { denialReport } from '../reports/call-report.ts';
import { screenInput } from '../session/screen-input.ts';
import { storeReports } from '../store/reports.ts';
import { approval, call, input } from '../store/schema.ts';
import { blockedEvent, hookBlocked, screeningFailures } from '../store/screening.ts';
import type { Tool } from '../tools/define-tool.ts';
import { parseArguments } from '../tools/parse-arguments.ts';
import { refOf } from './call-ref.ts';
import { changeArguments } from './change-arguments.ts';
import { findTool } from './find-tool.ts';
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
  const screened = await screenMessage(deps, owner, request.approval);
  const decision = await db.transaction(async (tx) => {
    await lockTurn(tx, request.fence);
    const locked = await closeIfExpired(tx, request.approval);
    const told = await answerByMessage(tx, locked, request.message);
    const { row, isNew } = told;
    const [stored] = await tx.select().from(call).where(eq(call.key, row.call));
    if (!stored) throw new Error('the call of an approval is not in the store');
    const settled = await settle(tx, { ...told, stored, owner, judged, screened, hooks: deps.hooks });
    if (settled.decision.kind !== 'pending') await markSettled(tx, row.id);
    const expiry = isNew ? [answeredEvent(row.id, row.call, owner.id, 'expired', null)] : [];
    const answer = told.byMessage ? [answeredEvent(row.id, row.call, owner.id, 'message', row.answeredBy)] : [];
    await recordEvents(tx, owner.session, [...expiry, ...answer, ...settled.events]);
    return settled.decision;
  });
  deps.notifier.moved(owner.stream);
  deps.reporter.wake();
  return decision;
}

type Told = LockedApproval & { readonly byMessage: boolean };

/** A message that could not wait is the answer, as if it had been typed here; a person's own, or the expiry, stands. */
async function answerByMessage(tx: Tx, locked: LockedApproval, message: string | null): Promise<Told> {
  if (message === null || locked.row.answer !== null || locked.row.settledAt !== null) {
    return { ...locked, byMessage: false };
  }
  const [from] = await tx.select({ sender: input.sender }).from(input).where(eq(input.id, message));
  const { id } = locked.row;
  await writeAnswer(tx, id, { answer: 'message', by: from?.sender ?? null }, { input: message });
  const [row] = await tx.select().from(approval).where(eq(approval.id, id));
  return { ...locked, row: row ?? locked.row, byMessage: true };
}

export type Yes = { readonly tool: Tool; readonly judgement: Cleared | Denied } | 'tool_gone';

/** Only a yes is judged; reading the workspace must not happen inside a transaction. Null: there was none yet. */
export async function judgeYes(deps: Deps, owner: TurnOwner, id: string): Promise<Yes | null> {
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

type Screened = Awaited<ReturnType<typeof screenInput>>;

/** A message typed instead of an answer is a prompt like any other. Null: there was none yet, or nobody is asked. */
async function screenMessage(deps: Deps, owner: TurnOwner, id: string): Promise<Screened | null> {
  if (!deps.hooks.has('UserPromptSubmit')) return null;
  const [row] = await deps.database.db
    .select({ input })
    .from(approval)
    .innerJoin(input, eq(input.id, approval.input))
    .where(and(eq(approval.id, id), eq(approval.answer, 'message')));
  if (!row) return null;
  // It came through the queue, where they were asked.
  if (row.input.kind === 'send_now') return { deny: null, failures: [] };
  const { id: of, kind: source, body: text, sender } = row.input;
  const at = { workspace: owner.workspacePath, turn: owner.id };
  return await screenInput(deps, owner.session, { kind: 'screen', input: of, source, text, sender, ...at });
}

interface Settling extends Omit<Told, 'isNew'> {
  readonly stored: CallRow;
  readonly owner: TurnOwner;
  readonly judged: Yes | null;
  readonly screened: Screened | null;
  readonly hooks: Hooks;
}

interface Settled {
  readonly decision: Decision;
  readonly events: readonly NewEvent[];
}

async function settle(tx: Tx, at: Settling): Promise<Settled> {
  const { row, stored, isOver } = at;
  // Concluded before; an answer that has come since is for the next turn.
  if (stored.status === 'blocked_on_approval') return BLOCKED;
  switch (row.answer) {
    case null:
      if (isOver) return await leaveOpen(tx, at);
      return { decision: { kind: 'pending', untilMs: row.expiresAt.getTime() }, events: [] };
    case 'approved':
      return await settleYes(tx, at);
    case 'expired':
      return await refuse(tx, at, { by: 'policy', text: TEXTS.expired });
    case 'message':
      return await settleMessage(tx, at);
    case 'rejected':
    case 'cancelled':
      return await stop(tx, at, row.answer, { kind: row.answer });
    case 'happened':
    case 'absent':
    case 'again':
      throw new Error('the approval of a call is answered as if it had run');
  }
}

const BLOCKED: Settled = { decision: { kind: 'expired' }, events: [] };

/** The turn ends BLOCKED, and the question stays: a late yes still has the call made, by the turn that it opens. */
async function leaveOpen(tx: Tx, { stored }: Settling): Promise<Settled> {
  await keepWaiting(tx, stored.key, TEXTS.kept);
  await refuseCalls(tx, await laterCalls(tx, stored.key), { status: 'fused', text: FUSED.kept, note: 'expired' });
  return BLOCKED;
}

/** A message that a hook keeps from the agent leaves of the answer that the call is not to run. */
async function settleMessage(tx: Tx, at: Settling): Promise<Settled> {
  const { row, screened, owner } = at;
  if (row.input === null) return await stop(tx, at, 'rejected', { kind: 'rejected' });
  // It came between the look and the lock: look again.
  if (screened === null && !at.byMessage && at.hooks.has('UserPromptSubmit')) return PENDING;
  const failures = screeningFailures(row.input, owner.id, screened?.failures ?? []);
  if (!screened || screened.deny === null) {
    const stopped = await stop(tx, at, 'message', { kind: 'message', input: row.input });
    return { ...stopped, events: [...failures, ...stopped.events] };
  }
  await tx.update(input).set(hookBlocked(screened.deny)).where(eq(input.id, row.input));
  const stopped = await stop(tx, at, 'rejected', { kind: 'rejected' });
  const blocked = blockedEvent({ input: row.input, turn: owner.id }, screened.deny);
  return { ...stopped, events: [...failures, blocked, ...stopped.events] };
}

const PENDING: Settled = { decision: { kind: 'pending', untilMs: 0 }, events: [] };

async function settleYes(tx: Tx, at: Settling): Promise<Settled> {
  const { row, stored, owner, judged } = at;
  // It came between the look and the lock: look again.
  if (judged === null) return PENDING;
  if (judged === 'tool_gone') return await refuse(tx, at, { by: 'policy', text: TEXTS.gone });
  const { tool, judgement } = judged;
  if (judgement.kind === 'denied') return await refuse(tx, at, judgement);
  const parsed = parseArguments(tool, judgement.args ?? row.asked.arguments);
  if (!parsed.ok) return await refuse(tx, at, { by: 'arguments', text: parsed.text });
  await changeArguments(tx, stored, row.editedArguments);
  return { decision: { kind: 'approved', ref: refOf(owner, tool, stored.ordinal, parsed, 'run') }, events: [] };
}

/** Data for the model; the turn goes on. */
async function refuse(tx: Tx, at: Settling, { by, text }: Pick<Denied, 'by' | 'text'>): Promise<Settled> {
  const { stored, owner } = at;
  await refuseCalls(tx, [stored.key], { status: 'denied', text, note: by });
  await report(tx, at, by);
  return { decision: { kind: 'denied' }, events: [deniedEvent(owner.id, stored.key, stored.tool, by)] };
}

async function report(tx: Tx, { hooks, stored, owner }: Settling, by: string): Promise<void> {
  const told = denialReport(hooks, { session: owner.session, turn: owner.id, call: stored }, by);
  if (told) await storeReports(tx, [told]);
}

/** The fuse: this call and everything after it in the batch never start, and each result names the cause. */
async function stop(
  tx: Tx,
  at: Settling,
  cause: 'rejected' | 'cancelled' | 'message',
  decision: Decision,
): Promise<Settled> {
  const { stored, owner } = at;
  await refuseCalls(tx, [stored.key], { status: 'denied', text: TEXTS[cause], note: cause });
  await refuseCalls(tx, await laterCalls(tx, stored.key), { status: 'fused', text: FUSED[cause], note: cause });
  await report(tx, at, 'person');
  return { decision, events: [deniedEvent(owner.id, stored.key, stored.tool, 'person')] };
}

export const TEXTS = {
  rejected: 'A person rejected this call. It did not run.',
  cancelled: 'A person cancelled here. The call did not run.',
  message: 'A person answered with a message instead of letting this call run; the message follows. It did not run.',
  expired: 'Nobody approved this call in time. It did not run.',
  kept: 'Still waiting: nobody has approved this call yet. It has not run, and the work stops here until somebody decides.',
  gone: 'This tool no longer exists, so the approved call did not run.',
} as const;

const FUSED = {
  rejected: 'Not started: a person rejected an earlier call of this batch.',
  cancelled: 'Not started: a person cancelled at an earlier call of this batch.',
  message: 'Not started: a person answered an earlier call of this batch with a message, which follows.',
  kept: 'Not started: nobody has approved an earlier call of this batch yet.',
} as const;
