import { and, eq, isNotNull } from 'drizzle-orm';
import { continuesByItself, type End } from '../../workflows/core/ends.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import type { Tx } from './database.ts';
import type { NewEvent } from './events.ts';
import type { FencedTurn } from './fence.ts';
import { jobInputOf } from './goal-turns.ts';
import { sha256 } from './hash.ts';
import { insertInput } from './intake.ts';
import { approval, input, subAgent, turn } from './schema.ts';
import { isOfAgent } from './sub-agents.ts';

/** One for each ended turn. */
export function continuationId(turnId: string): string {
  return `con_${sha256('continuation', turnId).slice(0, 32)}`;
}

export interface EndedByMachine {
  readonly end: End;
  readonly cancelAsked: boolean;
  /** What the model is told. */
  readonly directive: string | null;
}

/** Queues the directive that a job goes on with by itself, in the transaction of the end; nothing for other ends. */
export async function queueContinuation(
  tx: Tx,
  { id: turnId, session, origin }: FencedTurn,
  { end, cancelAsked, directive }: EndedByMachine,
): Promise<NewEvent[]> {
  // A sub-agent ends with its turn: whoever started it decides.
  if (directive === null || isOfAgent(session)) return [];
  const continuations = await continuationsOf(tx, origin);
  if (!continuesByItself(end, { continuations, cancelAsked })) return [];
  const id = continuationId(turnId);
  await insertInput(tx, { id, session, kind: 'directive', text: directive, sender: null, continues: turnId });
  const [n, of] = [continuations + 1, POLICY.recovery.continuationsPerJob];
  return [
    {
      key: `continues/${turnId}`,
      turn: turnId,
      event: { kind: 'job.continues', layer: 'driver', input: id, n, of },
    },
  ];
}

/** How often a job has gone on by itself, those that a person took back included. */
async function continuationsOf(tx: Tx, origin: string): Promise<number> {
  const rows = await tx
    .select({ id: input.id })
    .from(input)
    .innerJoin(turn, eq(turn.id, input.continues))
    .where(and(eq(turn.origin, origin), isNotNull(input.continues)));
  return rows.length;
}

/** The input whose work a turn does: a continuation, a round of a job's goal, an answer, or a sub-agent's end goes on with what there was; all else is its own. */
export async function originOf(tx: Tx, next: typeof input.$inferSelect): Promise<string> {
  if (next.kind === 'directive' && next.continues === null) return (await jobInputOf(tx, next.id)) ?? next.id;
  if (next.kind === 'agent_end') return (await originOfAgent(tx, next.sender ?? '')) ?? next.id;
  const [before] =
    next.continues !== null
      ? await tx.select({ origin: turn.origin }).from(turn).where(eq(turn.id, next.continues))
      : next.kind === 'call_back'
        ? await tx
            .select({ origin: turn.origin })
            .from(approval)
            .innerJoin(turn, eq(turn.id, approval.turn))
            .where(eq(approval.input, next.id))
        : [];
  return before?.origin ?? next.id;
}

/** The work of the turn that has started it. */
async function originOfAgent(tx: Tx, session: string): Promise<string | null> {
  const [started] = await tx
    .select({ origin: turn.origin })
    .from(subAgent)
    .innerJoin(turn, eq(turn.id, subAgent.turn))
    .where(eq(subAgent.session, session));
  return started?.origin ?? null;
}
