import type { SampleOutcome } from '../../workflows/core/sample-outcome.ts';
import type { Db } from './database.ts';
import { NO_CHANGE, refusal, type SampleClosing } from './samples.ts';
import { commitTurn } from './turn-commit.ts';

/** What was cut and has told nothing is cut for good; an attempt that has told one after all wins. */
export async function claimSample(
  db: Db,
  at: Pick<SampleClosing, 'fence' | 'sample' | 'step' | 'outcome'>,
): Promise<SampleOutcome> {
  const { fence, sample, step, outcome } = at;
  const committed = await commitTurn<SampleOutcome>(db, {
    ...NO_CHANGE,
    fence,
    step,
    keyed: { key: sample, result: outcome },
    events: [],
  });
  if (committed.kind === 'committed') return outcome;
  if (committed.kind === 'done_before') return committed.result;
  throw await refusal(db, fence);
}
