import { eq } from 'drizzle-orm';
import type { End } from '../../workflows/core/ends.ts';
import type { CancelAnswer } from '../../workflows/core/journal.ts';
import type { Tx } from './database.ts';
import type { NewEvent } from './events.ts';
import { cancel } from './schema.ts';

export type CancelRow = typeof cancel.$inferSelect;

/** What became of each request for a turn's end, now that there is one. */
export async function answerCancels(tx: Tx, cancels: readonly CancelRow[], end: End): Promise<NewEvent[]> {
  const took = end.signal.name === 'cancel_request';
  const answered: NewEvent[] = [];
  for (const [index, row] of cancels.entries()) {
    const answer: CancelAnswer = !took ? 'already_ended' : index === 0 ? 'took' : 'second';
    await tx.update(cancel).set({ answer }).where(eq(cancel.id, row.id));
    const { id, turn: turnId } = row;
    answered.push({
      key: `answered/${id}`,
      turn: turnId,
      event: { kind: 'cancel.answered', layer: 'turn', id, answer },
    });
  }
  return answered;
}
