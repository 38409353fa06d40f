import { and, eq, inArray, isNotNull, ne, sql } from 'drizzle-orm';
import type { InputKind } from '../../workflows/core/inputs.ts';
import { denialReport } from '../reports/call-report.ts';
import type { Tx } from './database.ts';
import { storeReports } from './reports.ts';
import { approval, turn } from './schema.ts';
import type { Screening } from './screening.ts';

/**
 * Calls that somebody refused after their turn had ended: whoever took the refusal need not know the hooks, so they
 * are told when it reaches its session, once.
 */
export async function reportLateDenials(
  tx: Tx,
  inputs: readonly { readonly id: string; readonly kind: InputKind }[],
  screening: Screening,
): Promise<void> {
  const ids = inputs.flatMap(({ id, kind }) => (kind === 'call_back' ? [id] : []));
  if (ids.length === 0) return;
  const refused = await tx
    .select({ approval, session: turn.session })
    .from(approval)
    .innerJoin(turn, eq(turn.id, approval.turn))
    .where(
      and(
        inArray(approval.input, ids),
        isNotNull(approval.answer),
        ne(approval.answer, 'approved'),
        sql`${approval.asked}->>'kind' = 'permission'`,
      ),
    );
  const reports = refused.flatMap(({ approval: { call: key, turn: of, asked, answeredBy }, session }) => {
    const by = answeredBy === null ? 'policy' : 'person';
    return denialReport(screening, { session, turn: of, call: { key, tool: asked.tool } }, by) ?? [];
  });
  await storeReports(tx, reports);
}
