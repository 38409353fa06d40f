import { and, eq, inArray, isNull } from 'drizzle-orm';
import { AGENT_TOOLS, agentsWaitId } from '../../workflows/core/agents.ts';
import type { WaitLook } from '../../workflows/core/gate.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Deps } from '../deps.ts';
import type { Tx } from '../store/database.ts';
import { agentEndInput } from '../store/agent-ends.ts';
import { input, turn } from '../store/schema.ts';
import {
  agentOfCall,
  type AgentRow,
  backgroundAgents,
  type CascadeAuthor,
  isStopped,
  markCancelled,
  startedBy,
} from '../store/sub-agents.ts';
import type { WaitPlan } from '../tools/define-tool.ts';
import { INTERRUPTED, type Looking, over, pinned } from '../turn/wait-over.ts';
import { startAgent } from './start.ts';

const NOT_STARTED = 'Not started: the turn was stopped before this call began. It had no effect.';

/**
 * Starts the sub-agent of a call, once; afterwards looks whether it has ended. `author`: set where the turn is
 * cancelled, and its sub-agent with it.
 */
export async function lookAtAgent(
  tx: Tx,
  at: Looking,
  plan: WaitPlan & { readonly kind: 'agent' },
  { agents, author }: { readonly agents: Deps['agents']; readonly author: CascadeAuthor | null },
): Promise<WaitLook> {
  const known = await agentOfCall(tx, at.row.key);
  if (known?.endedAt) return await over(tx, at, await statusOf(tx, known), known.report ?? '');
  if (known && author) {
    await markCancelled(tx, startedBy(at.row.key), author);
    const text = `Stopped: sub-agent ${known.session} (${known.name}) was cancelled with this turn. What it did until then stands.`;
    return await over(tx, at, 'stopped', text);
  }
  if (known) return { kind: 'waiting', wait: known.session, untilMs: lookAgainAt() };
  const isOver = author !== null || (await isStopped(tx, at.owner));
  return isOver ? await over(tx, at, 'not_started', NOT_STARTED) : await startAgent(tx, at, plan, agents);
}

async function statusOf(tx: Tx, { endTurn }: AgentRow): Promise<'ok' | 'error'> {
  const [row] = await tx
    .select({ reason: turn.endReason })
    .from(turn)
    .where(eq(turn.id, endTurn ?? ''));
  return row?.reason === 'COMPLETED' ? 'ok' : 'error';
}

function lookAgainAt(): number {
  return Date.now() + POLICY.subAgents.lookAgainMs;
}

/** Looks whether what a call waits for has happened: one of the sub-agents in the background has ended, or all. */
export async function lookAtAgents(
  tx: Tx,
  at: Looking,
  plan: WaitPlan & { readonly kind: 'agents' },
): Promise<WaitLook> {
  const { session } = at.owner;
  const rows = await backgroundAgents(tx, session, plan.ids);
  const missing = plan.ids?.find((id) => !rows.some((row) => row.session === id));
  if (missing !== undefined) return await over(tx, at, 'error', `You have no sub-agent ${missing} in the background.`);
  const news = plan.ids === null ? await withoutTold(tx, rows) : rows;
  const ended = news.filter((row) => row.endedAt !== null);
  const running = news.filter((row) => row.endedAt === null);
  if (news.length === 0) return await over(tx, at, 'error', 'You have no sub-agent in the background that is left.');
  const isOver = plan.for === 'any' ? ended.length > 0 : running.length === 0;
  if (!isOver && at.request.interrupted) return await over(tx, at, 'ok', INTERRUPTED);
  const untilMs = plan.forMs === null ? null : await pinned(tx, at, Date.now() + plan.forMs);
  if (isOver || (untilMs !== null && untilMs <= Date.now())) {
    await takeEnds(tx, ended);
    if (isOver) return await over(tx, at, 'ok', told(ended, running).join('\n\n'));
    const text = ['The time is over.', ...told(ended, running)].join('\n\n');
    return { ...(await over(tx, at, 'ok', text)), stillRuns: true };
  }
  return {
    kind: 'waiting',
    wait: agentsWaitId(session),
    untilMs: Math.min(untilMs ?? lookAgainAt(), lookAgainAt()),
  };
}

function told(ended: readonly AgentRow[], running: readonly AgentRow[]): string[] {
  const still = running.map(({ session, name }) => `${session} (${name})`).join(', ');
  return [...ended.map(({ report }) => report ?? ''), ...(still === '' ? [] : [`Still running: ${still}.`])];
}

/** Those whose end the model has not read. */
async function withoutTold(tx: Tx, rows: readonly AgentRow[]): Promise<AgentRow[]> {
  const open = await untoldInputs(tx, rows);
  return rows.filter(({ session, endedAt }) => endedAt === null || open.has(agentEndInput(session)));
}

/** What the call tells is no message any more. */
async function takeEnds(tx: Tx, ended: readonly AgentRow[]): Promise<void> {
  const open = await untoldInputs(tx, ended);
  if (open.size === 0) return;
  await tx
    .update(input)
    .set({ status: 'consumed' })
    .where(inArray(input.id, [...open]));
}

async function untoldInputs(tx: Tx, rows: readonly AgentRow[]): Promise<ReadonlySet<string>> {
  if (rows.length === 0) return new Set();
  const ids = rows.map(({ session }) => agentEndInput(session));
  const open = await tx
    .select({ id: input.id })
    .from(input)
    .where(and(inArray(input.id, ids), inArray(input.status, ['queued', 'forwarded']), isNull(input.message)));
  return new Set(open.map(({ id }) => id));
}

/** Tools whose calls hold ends of sub-agents back while they wait, since a message would cut them short. */
export const HOLDS_BACK_ENDS: readonly string[] = [AGENT_TOOLS.wait, 'ask_user'];
