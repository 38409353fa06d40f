import { and, eq } from 'drizzle-orm';
import { depthOf } from '../../workflows/core/agents.ts';
import type { Tx } from './database.ts';
import { storeReports } from './reports.ts';
import { event } from './schema.ts';
import type { Screening } from './screening.ts';

/** Hooks are told when the driver begins: with its first turn, or with one after it had come to rest. */
export async function reportStart(
  tx: Tx,
  session: string,
  turn: string,
  last: string | null,
  { has }: Pick<Screening, 'has'>,
): Promise<void> {
  if (depthOf(session) > 0 || !has('SessionStart') || (last !== null && !(await hasRested(tx, session, last)))) return;
  const facts = { source: last === null ? 'new' : 'resumed' };
  await storeReports(tx, [{ id: `session_start/${turn}`, body: { event: 'SessionStart', session, turn, facts } }]);
}

async function hasRested(tx: Tx, session: string, last: string): Promise<boolean> {
  const rested = and(eq(event.session, session), eq(event.turn, last), eq(event.kind, 'driver.ended'));
  const rows = await tx.select({ seq: event.seq }).from(event).where(rested).limit(1);
  return rows.length > 0;
}

/** Hooks are told when the driver has come to rest: once for each last turn. */
export async function reportRest(
  tx: Tx,
  session: string,
  last: string,
  { has }: Pick<Screening, 'has'>,
): Promise<void> {
  if (depthOf(session) > 0 || !has('SessionEnd')) return;
  const body = { event: 'SessionEnd', session, turn: last, facts: { reason: 'queue_empty' } } as const;
  await storeReports(tx, [{ id: `session_end/${last}`, body }]);
}
