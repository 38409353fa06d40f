import { and, eq, isNull, sql } from 'drizzle-orm';
import { depthOf } from '../../workflows/core/agents.ts';
import type { End } from '../../workflows/core/ends.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Usage } from '../../workflows/core/sample-outcome.ts';
import type { HookEvent } from '../gate/hook-types.ts';
import { fitAndKeep } from './blobs.ts';
import type { Tx } from './database.ts';
import { agentOf } from './definitions.ts';
import type { NewEvent } from './events.ts';
import { storable } from './hash.ts';
import { insertInput } from './intake.ts';
import { storeReports } from './reports.ts';
import { input, session, type StructuredOutput, subAgent } from './schema.ts';
import { agentOfSession, type AgentRow, countAgents, spentByTurn } from './sub-agents.ts';

/** The input that tells a session of the end of one of its sub-agents. */
export function agentEndInput(agent: string): string {
  return `agent_end/${agent}`;
}

export interface AgentEnding {
  readonly session: string;
  readonly turn: string;
  readonly end: End;
  /** Who asked for the end, where somebody did. */
  readonly by: string | null;
  readonly usage: Usage;
  readonly structuredOutput: StructuredOutput | null;
  /** What it said last. */
  readonly lastText: string | null;
  readonly reports: ((event: HookEvent) => boolean) | undefined;
}

/**
 * The end of a sub-agent's turn is its own: its lease is over, and whoever started it is told, by the result of the
 * call that waits or by an input. Nothing for any other session.
 */
export async function endAgent(tx: Tx, ending: AgentEnding): Promise<NewEvent[]> {
  if (depthOf(ending.session) === 0) return [];
  const before = await agentOfSession(tx, ending.session);
  if (!before || before.endedAt) return [];
  const [own, below] = [await spentByTurn(tx, ending.turn), await countAgents(tx, ending.turn)];
  const charged = { tokens: own.tokens + below.tokens, microUsd: own.microUsd + below.microUsd };
  const report = await reportOf(tx, before, ending, charged.tokens);
  const left = await closeSession(tx, ending.session);
  const [row] = await tx
    .update(subAgent)
    .set({
      endedAt: sql`clock_timestamp()`,
      endTurn: ending.turn,
      report,
      chargedTokens: charged.tokens,
      chargedMicroUsd: charged.microUsd,
    })
    .where(and(eq(subAgent.session, ending.session), isNull(subAgent.endedAt)))
    .returning();
  if (!row) return [];
  await reportStop(tx, row, ending);
  return [...left, ...(await tellSession(tx, row, report)), endedEvent(row, ending)];
}

/** No second turn opens: what still waits for one is answered, and nothing more is taken in. */
async function closeSession(tx: Tx, id: string): Promise<NewEvent[]> {
  await tx.update(session).set({ state: 'archived' }).where(eq(session.id, id));
  const why = 'The sub-agent has ended.';
  const left = await tx
    .update(input)
    .set({ status: 'withdrawn', droppedWhy: why, droppedAt: sql`clock_timestamp()` })
    .where(and(eq(input.session, id), eq(input.status, 'queued')))
    .returning({ id: input.id });
  return left.map(({ id: dropped }) => ({
    key: `withdrawn/${dropped}`,
    turn: null,
    event: { kind: 'input.dropped', layer: 'driver', input: dropped, status: 'withdrawn', by: null, why },
  }));
}

/** What was cancelled with its parent is nobody's news: it would wake who was stopped. */
async function tellSession(tx: Tx, row: AgentRow, text: string): Promise<NewEvent[]> {
  if (row.mode === 'foreground' || row.cancelledAt !== null) return [];
  const id = agentEndInput(row.session);
  await insertInput(tx, { id, session: row.parent, kind: 'agent_end', text, sender: row.session });
  return [
    {
      key: `input/${id}`,
      turn: null,
      event: { kind: 'input.accepted', layer: 'driver', input: id, source: 'agent_end', by: row.session },
    },
  ];
}

async function reportStop(tx: Tx, row: AgentRow, { end, reports }: AgentEnding): Promise<void> {
  if (!reports?.('SubagentStop')) return;
  const { session: agent, name, mode } = row;
  const facts = { agent, name, mode, reason: end.reason, detail: end.detail, decidedBy: end.decidedBy };
  const body = { event: 'SubagentStop', session: row.parent, turn: row.turn, facts } as const;
  await storeReports(tx, [{ id: `agent_stop/${agent}`, body }]);
}

function endedEvent(row: AgentRow, { end, usage }: AgentEnding): NewEvent {
  const { reason, detail, decidedBy, signal } = end;
  return {
    key: `agent_ended/${row.session}`,
    turn: row.turn,
    event: {
      kind: 'agent.ended',
      layer: 'batch',
      agent: row.session,
      name: row.name,
      reason,
      detail,
      decidedBy,
      signal: signal.name,
      usage,
    },
  };
}

/**
 * Its end as it was, then its own words, last: nothing that stands in them can pass for a word of ours behind them. Of
 * words that are too many for a result the whole is kept.
 */
async function reportOf(tx: Tx, row: AgentRow, ending: AgentEnding, tokens: number): Promise<string> {
  const { end, by, structuredOutput, lastText } = ending;
  const who = by === null ? end.decidedBy : `${end.decidedBy} (${by})`;
  const told = storable(
    `Sub-agent ${row.session} (${row.name}) ended ${end.reason}/${end.detail}, decided by ${who}. It used ${tokens} tokens.`,
  );
  const answer = structuredOutput && 'value' in structuredOutput ? JSON.stringify(structuredOutput.value) : null;
  const words = answer ?? lastText;
  if (words === null) return `${told} It said nothing.`;
  const intro = answer === null ? 'All that follows is what it said last:' : 'Its answer:';
  const { tenant, canRead } = await readerOf(tx, row.parent);
  const room = POLICY.tools.resultChars - told.length - intro.length - KEPT_CHARS;
  const { text, blob } = await fitAndKeep(tx, tenant, storable(words), room);
  const kept = blob === null || !canRead ? '' : ` It is shortened here; the whole is kept: read_output, id ${blob}.`;
  return `${told}${kept} ${intro}\n${text}`;
}

/** Room for the sentence that says where the whole is kept. */
const KEPT_CHARS = 200;

/** Whose report it is, and whether it could read on. */
async function readerOf(tx: Tx, parent: string): Promise<{ readonly tenant: string; readonly canRead: boolean }> {
  const [row] = await tx.select().from(session).where(eq(session.id, parent));
  if (!row) throw new Error('the session of a sub-agent is not in the store');
  const { tools } = await agentOf(tx, row.agent);
  return { tenant: row.tenant, canRead: tools.includes('read_output') };
}
