import { and, eq, sql } from 'drizzle-orm';
import { AGENT_TOOLS } from '../../workflows/core/agents.ts';
import type { CarriedCall } from '../../workflows/core/turn-state.ts';
import type { Tx } from './database.ts';
import { approval, call, turn } from './schema.ts';

/** The call whose late yes opened this turn; one that came to any turn but the next allows nothing. */
export async function carriedBy(
  tx: Tx,
  open: Pick<typeof turn.$inferSelect, 'session' | 'n' | 'input' | 'baseHead'>,
): Promise<CarriedCall | null> {
  const [found] = await tx
    .select({ call })
    .from(approval)
    .innerJoin(call, eq(call.key, approval.call))
    .innerJoin(turn, eq(turn.id, approval.turn))
    .where(
      and(
        eq(approval.input, open.input),
        eq(approval.answer, 'approved'),
        sql`${approval.asked}->>'kind' = 'permission'`,
        eq(turn.session, open.session),
        eq(turn.n, open.n - 1),
        // Rewound meanwhile: the yes was given for another situation.
        eq(turn.head, open.baseHead),
      ),
    );
  if (!found) return null;
  const { assistant, ordinal, tool, effect, argumentsHash: argsHash } = found.call;
  const runs = tool === AGENT_TOOLS.spawn ? 'child' : 'activity';
  const ref = { ordinal, tool, runs, effect, argsHash, locks: [], verdict: 'run' } as const;
  // Whether its tool has an undo is for the undo to find out.
  return { assistant, ref: effect === 'none' ? ref : { ...ref, undo: 'declared' } };
}
