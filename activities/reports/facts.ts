import { eq } from 'drizzle-orm';
import type { HookFacts } from '../gate/hook-types.ts';
import { readCall } from '../store/ledger.ts';
import type { NewReport } from '../store/reports.ts';
import { session, turn } from '../store/schema.ts';
import { type ChainReader, lastTextOf } from '../store/last-text.ts';

/** What a hook is told of a report: its codes, and the texts that its references stand for. */
export async function factsOf(deps: ChainReader, { id, body }: NewReport): Promise<HookFacts> {
  const { db } = deps.database;
  const [owner] = await db.select().from(session).where(eq(session.id, body.session));
  const common = { id, session: body.session, turn: body.turn, workspace: owner?.workspacePath ?? '', ...body.facts };
  if (body.call !== undefined) return { ...common, ...(await callFacts(deps, body.call)) };
  return isStop(body.event) && body.turn !== null ? { ...common, ...(await endFacts(deps, body.turn)) } : common;
}

function isStop(event: string): boolean {
  return event === 'Stop' || event === 'StopFailure' || event === 'StopCancelled';
}

async function callFacts({ database }: ChainReader, key: string) {
  const found = await readCall(database.db, key);
  if (!found) return {};
  const { tool, effect, status, result, note } = found.call;
  return { tool, effect, args: parsed(found.call.arguments), status, result, note };
}

/** A denied call may hold anything. */
function parsed(raw: string): unknown {
  try {
    return JSON.parse(raw);
  } catch {
    return raw;
  }
}

async function endFacts(deps: ChainReader, id: string) {
  const [row] = await deps.database.db.select().from(turn).where(eq(turn.id, id));
  if (!row) return {};
  return {
    reason: row.endReason,
    detail: row.endDetail,
    decidedBy: row.endDecidedBy,
    signal: row.endSignal,
    by: row.endBy,
    why: row.endWhy,
    recordedBy: row.recordedBy,
    step: row.endStep,
    usage: row.endUsage,
    lastText: await lastTextOf(deps, row.head),
  };
}
