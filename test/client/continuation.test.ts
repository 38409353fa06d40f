import { afterAll, beforeAll, expect, test } from 'vitest';
import { event } from '../../activities/store/schema.ts';
import { eq } from 'drizzle-orm';
import { showText } from '../../client/cli/show-text.ts';
import { whyText } from '../../client/cli/why-text.ts';
import { WhySchema } from '../../client/http/why-schema.ts';
import { NO_USAGE } from '../../workflows/core/sample-outcome.ts';
import { seedContinuation, seedJob, seedTurn, storeOnly } from './seed.ts';

let at: Awaited<ReturnType<typeof storeOnly>>;
beforeAll(async () => {
  at = await storeOnly();
});
afterAll(() => at.close());

const LOST = {
  endedAt: new Date(),
  endReason: 'INTERRUPTED',
  endDetail: 'lost',
  endDecidedBy: 'runtime',
  endSignal: { name: 'engine', event: 'unknown' },
  endPhase: 'cleanup',
  endStep: 1,
  endUsage: NO_USAGE,
  recordedBy: 'recovery',
} as const;

/** A job whose first turn a machine ended, and what it goes on with. */
async function interrupted() {
  const made = await seedJob(at.database);
  const turn = await seedTurn(at.database, made, { end: LOST });
  const input = await seedContinuation(at.database, { session: made.session, continues: turn, status: 'queued' });
  return { ...made, turn, directive: input };
}

test('a job that goes on by itself still runs, for everybody who asks', async () => {
  const { job, turn, directive } = await interrupted();
  expect(await at.runs.get('default', job)).toMatchObject({
    state: 'running',
    turn,
    end: { detail: 'lost' },
    dropped: null,
  });
  expect(await at.runs.ps('default')).toMatchObject([{ job: { id: job }, engine: null, agrees: true }]);
  const why = (await at.runs.why('default', job))!;
  expect(WhySchema.parse(why)).toMatchObject({
    state: 'ended',
    goesOn: { input: directive, n: 1, of: 3, state: 'queued', turn: null },
    advice: ['Nothing: it goes on by itself, time 1 of 3. `pawl cancel` takes that back.'],
  });
  expect(whyText(why)).toContain('\n  goes on by itself, time 1 of 3: queued\n');
  const shown = (await at.runs.show('default', job))!;
  expect(showText(shown, Date.now())).toContain('\ngoes on by itself: a turn more is queued\n');
});

test('a person’s cancel takes the turn back that is to come: the job is done, and says by whom', async () => {
  const { job, session, directive } = await interrupted();
  expect(await at.runs.cancel('default', job, { by: 'ann', why: 'enough' })).toBe('withdrawn');
  expect(await at.runs.cancel('default', job, { by: 'bob' })).toBe('withdrawn');
  const dropped = { as: 'withdrawn', by: 'ann', why: 'enough' };
  expect(await at.runs.get('default', job)).toMatchObject({ state: 'done', end: { detail: 'lost' }, dropped });
  expect((await at.runs.events('default', job).next()).value).toMatchObject({ type: 'event' });
  const told = await at.database.db.select().from(event).where(eq(event.stream, session));
  expect(told.map(({ body }) => body).slice(1)).toMatchObject([
    { kind: 'job.continues' },
    { kind: 'input.dropped', layer: 'driver', input: directive, status: 'withdrawn', by: 'ann', why: 'enough' },
  ]);
  expect(await at.runs.why('default', job)).toMatchObject({
    goesOn: { state: 'taken_back' },
    advice: ['Nothing: going on was taken back; hand it in again if it is still wanted.'],
  });
  const shown = (await at.runs.show('default', job))!;
  expect(showText(shown, Date.now())).toContain('\n  withdrawn before it went on by itself by ann: “enough”\n');
});

test('the result of a job that went on is that of its last turn; the turn before says where it went on', async () => {
  const made = await seedJob(at.database);
  const first = await seedTurn(at.database, made, { end: LOST });
  const directive = await seedContinuation(at.database, {
    session: made.session,
    continues: first,
    status: 'consumed',
  });
  const end = { ...LOST, endReason: 'COMPLETED', endDetail: 'final_answer', endDecidedBy: 'model' } as const;
  const second = await seedTurn(at.database, made, { n: 2, input: directive, end });
  expect(await at.runs.get('default', made.job)).toMatchObject({
    state: 'done',
    turn: second,
    end: { reason: 'COMPLETED' },
  });
  expect(await at.runs.why('default', first)).toMatchObject({
    goesOn: { n: 1, state: 'opened', turn: second },
    advice: [`Nothing: it went on by itself in turn ${second}; ask about that one.`],
  });
  const shown = (await at.runs.show('default', made.job))!;
  expect(shown.turns.map(({ id, continues }) => [id, continues])).toEqual([
    [first, null],
    [second, first],
  ]);
  expect(showText(shown, Date.now())).toMatch(/\nturn 2, opened \S+, goes on by itself after turn 1\n/);
});

test('after the third time a person has to look, and is told how often it was tried', async () => {
  const made = await seedJob(at.database);
  let input = made.input;
  for (const n of [1, 2, 3, 4]) {
    const turn = await seedTurn(at.database, made, { n, input, end: LOST });
    if (n < 4)
      input = await seedContinuation(at.database, { session: made.session, continues: turn, status: 'consumed', n });
  }
  expect(await at.runs.get('default', made.job)).toMatchObject({ state: 'needs_attention', turn: `${made.session}/4` });
  expect(await at.runs.why('default', made.job)).toMatchObject({
    goesOn: null,
    advice: [
      'See what its last calls did to the world (`pawl approvals` lists those that nobody can tell of); then hand in what is left.',
      'It has gone on by itself 3 times before, and does not again: find out what keeps ending it.',
    ],
  });
});

test('a plan flag shows', async () => {
  const { job, session } = await seedJob(at.database);
  const line = `\n  plans   only readers and writes to its plan file run: \`pawl plan ${session} off\` ends that\n`;
  const show = async () => showText((await at.runs.show('default', job))!, Date.now());
  expect(await show()).not.toContain('\n  plans ');
  await at.runs.plan('default', session, { plan: true, by: 'ann' });
  expect(await show()).toContain(line);
});
