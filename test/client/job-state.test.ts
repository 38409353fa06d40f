import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { input } from '../../activities/store/schema.ts';
import { JOB_STATES, type JobFacts, jobStateOf } from '../../client/job.ts';
import { listJobs } from '../../client/read-jobs.ts';
import type { EndReason } from '../../workflows/core/ends.ts';
import type { InputStatus } from '../../workflows/core/inputs.ts';
import { NO_USAGE } from '../../workflows/core/sample-outcome.ts';
import { type TestDatabase, testDatabase } from '../support/database.ts';
import { seedContinuation, seedJob, seedTurn } from './seed.ts';

const REASONS: readonly EndReason[] = ['COMPLETED', 'BLOCKED', 'MAX_TOKENS', 'ABORTED', 'ERROR', 'INTERRUPTED'];
const STATUSES: readonly InputStatus[] = [
  'queued',
  'forwarded',
  'consumed',
  'dropped_by_cancel',
  'withdrawn',
  'hook_blocked',
];

const ended = (reason: EndReason) => ({ end: { reason } });

describe('the state of a job', () => {
  test.each<[JobFacts, string]>([
    [{ turn: null, next: 'queued' }, 'queued'],
    [{ turn: null, next: 'withdrawn' }, 'done'],
    [{ turn: null, next: 'hook_blocked' }, 'done'],
    [{ turn: { end: null }, next: null }, 'running'],
    [{ turn: ended('COMPLETED'), next: null }, 'done'],
    [{ turn: ended('MAX_TOKENS'), next: null }, 'done'],
    [{ turn: ended('ERROR'), next: null }, 'done'],
    [{ turn: ended('ABORTED'), next: null }, 'done'],
    [{ turn: ended('BLOCKED'), next: null }, 'blocked'],
    [{ turn: ended('INTERRUPTED'), next: null }, 'needs_attention'],
    // It goes on by itself, or a person has taken that back.
    [{ turn: ended('INTERRUPTED'), next: 'queued' }, 'running'],
    [{ turn: ended('INTERRUPTED'), next: 'withdrawn' }, 'done'],
  ])('%j is %s', (facts, state) => {
    expect(jobStateOf(facts)).toBe(state);
  });
});

// The filter of a list is SQL: it must not say anything else than the function.
describe('the same in SQL', () => {
  let database: TestDatabase;
  const expected = new Map<string, string>();
  beforeAll(async () => {
    database = await testDatabase();
    for (const status of STATUSES) {
      for (const turn of [null, { end: null }, ...REASONS.map(ended)]) {
        const job = await seedJob(database);
        await database.db.update(input).set({ status }).where(eq(input.id, job.input));
        if (turn) await seedTurn(database, job, turn.end ? { end: endRow(turn.end.reason) } : {});
        expected.set(job.job, jobStateOf(turn ? { turn, next: null } : { turn, next: status }));
      }
      for (const turn of REASONS.map(ended)) {
        const job = await seedJob(database);
        const continues = await seedTurn(database, job, { end: endRow(turn.end.reason) });
        await seedContinuation(database, { session: job.session, continues, status });
        expected.set(job.job, jobStateOf({ turn, next: status }));
      }
    }
  });
  afterAll(() => database.close());

  test.each(JOB_STATES)('a list of %s jobs has exactly those', async (state) => {
    const { jobs } = await listJobs(database.db, 'default', { state, limit: 200 });
    const wanted = [...expected].filter(([, each]) => each === state).map(([id]) => id);
    expect(jobs.map((job) => job.id).toSorted()).toEqual(wanted.toSorted());
    expect(jobs.every((job) => job.state === state)).toBe(true);
  });
});

function endRow(endReason: EndReason) {
  return {
    endedAt: new Date(),
    endReason,
    endDetail: 'final_answer',
    endDecidedBy: 'runtime',
    endSignal: { name: 'model_stop' },
    endPhase: 'ending',
    endStep: 1,
    endUsage: NO_USAGE,
    recordedBy: 'turn',
  } as const;
}
