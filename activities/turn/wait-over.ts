import { eq } from 'drizzle-orm';
import type { WaitLook } from '../../workflows/core/gate.ts';
import type { WaitRequest } from '../../workflows/core/requests.ts';
import type { CallStatus } from '../../workflows/core/tools.ts';
import type { Deps } from '../deps.ts';
import { callReport } from '../reports/call-report.ts';
import { fitAndKeep } from '../store/blobs.ts';
import type { Tx } from '../store/database.ts';
import { type NewEvent, recordEvents } from '../store/events.ts';
import { sha256, storable } from '../store/hash.ts';
import { type CallRow, finished } from '../store/ledger.ts';
import type { TurnOwner } from '../store/owners.ts';
import { storeReports } from '../store/reports.ts';
import { call, commit } from '../store/schema.ts';
import { findCommit } from '../store/turn-commit.ts';

/** A waiting call that is looked at. */
export interface Looking {
  readonly request: WaitRequest;
  readonly owner: TurnOwner;
  readonly row: CallRow;
  readonly hooks: Deps['hooks'];
}

export const INTERRUPTED = 'The wait was interrupted by a message, which follows.';

/** The time is fixed at the first look, whatever is repeated. */
export async function pinned(tx: Tx, { row, owner, request }: Looking, untilMs: number): Promise<number> {
  const key = sha256('wait', row.key);
  const before = await findCommit<{ untilMs: number }>(tx, key);
  if (before) return before.untilMs;
  await tx.insert(commit).values({ key, turn: owner.id, run: request.fence.run, result: { untilMs } });
  return untilMs;
}

/** Gives the call its result; one that is too long is kept whole beside it. */
export async function over(
  tx: Tx,
  { row, owner, hooks }: Looking,
  status: CallStatus,
  text: string,
  before: readonly NewEvent[] = [],
): Promise<WaitLook & { readonly kind: 'over' }> {
  const { text: result, blob } = await fitAndKeep(tx, owner.tenant, storable(text));
  await tx.update(call).set({ status, result, blob, note: null, finishedAt: new Date() }).where(eq(call.key, row.key));
  const report = callReport(hooks, { session: owner.session, turn: owner.id, call: row, status });
  if (report) await storeReports(tx, [report]);
  await recordEvents(tx, owner.session, [
    ...before,
    finished({ key: row.key, turn: owner.id, tool: row.tool, status, note: null }),
  ]);
  return { kind: 'over', status };
}
