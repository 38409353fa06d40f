import { ApplicationFailure } from '@temporalio/common';
import { eq, sql } from 'drizzle-orm';
import { AGENT_TOOLS } from '../../workflows/core/agents.ts';
import type { WaitLook } from '../../workflows/core/gate.ts';
import type { WaitRequest } from '../../workflows/core/requests.ts';
import { cancelAuthorOf, cascade } from '../agents/cascade.ts';
import { HOLDS_BACK_ENDS, lookAtAgent, lookAtAgents } from '../agents/look.ts';
import type { Deps } from '../deps.ts';
import { answeredEvent, approvalIdOf, type ApprovalRow, markSettled, openApproval } from '../store/approvals.ts';
import type { Tx } from '../store/database.ts';
import { type NewEvent, recordEvents } from '../store/events.ts';
import { enterRun, lockTurn } from '../store/fence.ts';
import { effectKey } from '../store/hash.ts';
import { type CallRow, readCall } from '../store/ledger.ts';
import { ownerOf } from '../store/owners.ts';
import { takeEvent, type TakenEvent } from '../store/outside-events.ts';
import { approval, type ApprovalAnswer, call, input } from '../store/schema.ts';
import { agentOfCall, countAgents } from '../store/sub-agents.ts';
import type { WaitPlan } from '../tools/define-tool.ts';
import { parseArguments } from '../tools/parse-arguments.ts';
import { WAITS } from './results.ts';
import { confirmRun, knownRuns } from './runs.ts';
import { tellSession } from './tell-session.ts';
import { INTERRUPTED, type Looking, over, pinned } from './wait-over.ts';

/** Opens a wait, or looks whether it is over; the row in the store decides, and the first result stands. */
export async function lookAtWait(deps: Deps, request: WaitRequest): Promise<WaitLook> {
  const { db } = deps.database;
  await enterRun(db, request.fence, knownRuns, confirmRun(deps));
  const owner = await ownerOf(db, request.fence.turn);
  const row = await readCall(db, effectKey(request.assistant, request.ordinal));
  if (!row) throw ApplicationFailure.nonRetryable('The call is not in the store.', 'tool.call_missing');
  if (row.call.status) {
    const look = { kind: 'over', status: row.call.status } as const;
    // Whoever committed this may have died before it could tell.
    await tellOthers(deps, { request, owner, row: row.call, hooks: deps.hooks }, look);
    return await counted(deps, owner.id, row.call, look);
  }
  const found = deps.tools.lookup(row.call.tool);
  const parsed = found.ok ? parseArguments(found.tool, row.call.arguments) : null;
  const plan = found.ok && parsed?.ok ? (found.tool.wait?.(parsed.args, Date.now()) ?? null) : null;
  const at: Looking = { request, owner, row: row.call, hooks: deps.hooks };
  const author = request.cancelled ? await cancelAuthorOf(deps, request.fence) : null;
  const look = await db.transaction(async (tx) => {
    await lockTurn(tx, request.fence);
    const seen =
      plan?.kind === 'agent'
        ? await lookAtAgent(tx, at, plan, { agents: deps.agents, author })
        : plan?.kind === 'agents'
          ? await lookAtAgents(tx, at, plan)
          : await lookIn(tx, at, plan);
    // Should the turn be stopped now, this is what the call was doing.
    if (seen.kind === 'waiting') await tx.update(call).set({ note: WAITS }).where(eq(call.key, row.call.key));
    return seen;
  });
  deps.notifier.moved(owner.stream);
  deps.reporter.wake();
  await tellOthers(deps, at, look);
  return await counted(deps, owner.id, at.row, look);
}

/** Who else has to know: a sub-agent that begins or is to stop, a session that held ends of sub-agents back. */
async function tellOthers(deps: Deps, { row, owner, request }: Looking, look: WaitLook): Promise<void> {
  if (row.tool === AGENT_TOOLS.spawn) {
    if (request.cancelled) return await cascade(deps, owner.session);
    const agent = await agentOfCall(deps.database.db, row.key);
    if (agent && agent.endedAt === null) await tellSession(deps, agent.session);
  } else if (look.kind === 'over' && HOLDS_BACK_ENDS.includes(row.tool)) await tellSession(deps, owner.session);
}

/** What sub-agents count against the budgets comes with each look at one. */
async function counted({ database }: Deps, turn: string, { tool }: CallRow, look: WaitLook): Promise<WaitLook> {
  const isAboutAgents = tool === AGENT_TOOLS.spawn || tool === AGENT_TOOLS.wait;
  return isAboutAgents ? { ...look, agents: await countAgents(database.db, turn) } : look;
}

async function lookIn(tx: Tx, at: Looking, plan: OwnPlan | null): Promise<WaitLook> {
  const { request } = at;
  if (plan === null) return await over(tx, at, 'error', 'This tool no longer waits for anything.');
  if (plan.kind === 'report') {
    const opened = await open(tx, at, { kind: plan.on, text: plan.text, forMs: 0 });
    return await leaveOpen(tx, at, opened, 'Noted. The work stops here until what is needed has come.');
  }
  if (plan.kind !== 'time') return await lookForAnswer(tx, at, plan);
  if (request.interrupted) return await over(tx, at, 'ok', INTERRUPTED);
  const untilMs = await pinned(tx, at, plan.untilMs);
  if (untilMs <= Date.now()) return await over(tx, at, 'ok', 'The time is over.');
  return { kind: 'waiting', wait: approvalIdOf(at.row.key), untilMs };
}

/** What is no sub-agent's business. */
type OwnPlan = Exclude<WaitPlan, { readonly kind: 'agent' | 'agents' }>;

/** What is asked or waited for outside the turn. */
type Question = WaitPlan & { readonly kind: 'question' | 'event' };
type Opened = Awaited<ReturnType<typeof openApproval>>;

async function open(tx: Tx, { row, owner }: Looking, { kind, text, forMs }: Question): Promise<Opened> {
  const asked = { kind, tool: row.tool, subject: text, arguments: row.arguments, onExpiry: 'block' } as const;
  return await openApproval(tx, { turn: owner.id, call: row.key, asked, expiryMs: forMs });
}

/** The answer, if there is one; then a message that came between; then its time. */
async function lookForAnswer(tx: Tx, at: Looking, plan: Question): Promise<WaitLook> {
  const { owner, request } = at;
  const opened = await open(tx, at, plan);
  const taken = opened.row.answer === null && plan.kind === 'event' ? await takeEvent(tx, owner, plan.text) : null;
  if (taken) return await happened(tx, at, opened, taken);
  if (opened.row.answer !== null) {
    await markSettled(tx, opened.row.id);
    return await over(tx, at, 'ok', await answerText(tx, opened.row));
  }
  if (request.interrupted) return await withdraw(tx, at, opened);
  const untilMs = opened.row.expiresAt.getTime();
  if (untilMs <= Date.now()) return await leaveOpen(tx, at, opened, STILL[plan.kind]);
  await recordEvents(tx, owner.session, [opened.event]);
  return { kind: 'waiting', wait: opened.row.id, untilMs };
}

/** Nobody need answer it any more: the model reads the message, and asks again if it still wants to know. */
async function withdraw(tx: Tx, at: Looking, opened: Opened): Promise<WaitLook> {
  return await over(tx, at, 'ok', INTERRUPTED, await answerHere(tx, at, opened, 'cancelled', null));
}

/** It was reported before anybody waited for it. */
async function happened(tx: Tx, at: Looking, opened: Opened, { body, sender }: TakenEvent): Promise<WaitLook> {
  return await over(tx, at, 'ok', body || HAPPENED, await answerHere(tx, at, opened, 'message', sender));
}

const HAPPENED = 'It has happened.';

/** An answer that the turn gives itself. Returns what to tell of it. */
async function answerHere(
  tx: Tx,
  { row, owner }: Looking,
  opened: Opened,
  answer: ApprovalAnswer,
  by: string | null,
): Promise<NewEvent[]> {
  const { id } = opened.row;
  const now = sql`clock_timestamp()`;
  await tx.update(approval).set({ answer, answeredBy: by, answeredAt: now, settledAt: now }).where(eq(approval.id, id));
  return [opened.event, answeredEvent(id, row.key, owner.id, answer, by)];
}

/** The turn ends BLOCKED, and the wait stays open: its answer starts the next one. */
async function leaveOpen(tx: Tx, at: Looking, opened: Opened, text: string): Promise<WaitLook> {
  await markSettled(tx, opened.row.id);
  const status = opened.row.asked.kind === 'question' ? 'blocked_on_input' : 'blocked_on_event';
  return await over(tx, at, status, text, [opened.event]);
}

const STILL = {
  question: 'Still waiting: nobody has answered yet. The work stops here until then.',
  event: 'Still waiting: it has not happened yet. The work stops here until then.',
} as const;

/** The answer becomes this call's result, so its input is consumed by it. */
async function answerText(tx: Tx, { answer, input: id }: ApprovalRow): Promise<string> {
  if (id === null) return `The person did not answer: ${answer}.`;
  const [row] = await tx.update(input).set({ status: 'consumed' }).where(eq(input.id, id)).returning();
  return row ? row.body || HAPPENED : 'The answer is gone.';
}
