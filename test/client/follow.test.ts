import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type NewEvent, recordEvents } from '../../activities/store/events.ts';
import type { AcceptedJob } from '../../activities/store/intake.ts';
import { type DeltaChunk, UNKNOWN_USAGE, writeDeltas } from '../../activities/store/samples.ts';
import { turn } from '../../activities/store/schema.ts';
import { BadPosition, type FollowRequest, type RunEvent } from '../../client/index.ts';
import { NO_USAGE } from '../../workflows/core/sample-outcome.ts';
import { until } from '../support/until.ts';
import { seedJob, seedTurn, storeOnly } from './seed.ts';

let at: Awaited<ReturnType<typeof storeOnly>>;
beforeAll(async () => {
  at = await storeOnly();
});
afterAll(() => at.close());

const USAGE_END = {
  detail: null,
  decidedBy: 'model',
  signal: 'stop',
  failure: null,
  note: null,
  message: null,
  usage: UNKNOWN_USAGE,
} as const;

/** A job with an open turn, and the means to make things happen in it. */
async function openJob() {
  const job = await seedJob(at.database);
  const id = await seedTurn(at.database, job);
  const record = async (key: string, event: NewEvent['event']) => {
    await recordEvents(at.database.db, job.session, [{ key, turn: id, event }]);
    at.notifier.moved(job.session);
  };
  return {
    ...job,
    begin: (attempt: string, step = 0) =>
      record(`started/${attempt}`, {
        kind: 'sample.started',
        layer: 'stream',
        step,
        attempt,
        transition: 'opened',
        model: 'm',
      }),
    finish: (attempt: string, step = 0) =>
      record(`stream/${attempt}`, {
        kind: 'stream.ended',
        layer: 'stream',
        step,
        attempt,
        reason: 'stop',
        ...USAGE_END,
      }),
    async write(attempt: string, chunks: readonly [number, string][]) {
      const rows = chunks.map(([n, chunk]): DeltaChunk => ({ n, channel: 'text', chunk }));
      await writeDeltas(at.database.db, { stream: job.session, turn: id, step: 0, attempt }, rows);
      at.notifier.moved(job.session);
    },
    tick: (n: number) => record(`tick/${n}`, { kind: 'turn.reset', layer: 'turn', generation: n }),
    async end() {
      const end = {
        endReason: 'COMPLETED',
        endDetail: 'final_answer',
        endDecidedBy: 'model',
        endPhase: 'ending',
      } as const;
      const more = {
        endSignal: { name: 'model_stop' },
        endUsage: NO_USAGE,
        endedAt: new Date(),
        recordedBy: 'turn',
      } as const;
      await at.database.db
        .update(turn)
        .set({ ...end, ...more })
        .where(eq(turn.id, id));
      at.notifier.moved(job.session);
    },
  };
}

/** Follows in the background and keeps what came. */
function follow(job: AcceptedJob, request: FollowRequest = {}) {
  const items: RunEvent[] = [];
  const events = at.runs.events('default', job.job, request);
  const end = (async () => {
    for (;;) {
      const { done, value } = await events.next();
      if (done) return value;
      items.push(value);
    }
  })();
  return { items, end };
}

const seqs = (items: readonly RunEvent[]) => items.flatMap((item) => (item.type === 'event' ? [item.event.seq] : []));
const line = (item: RunEvent) => (item.type === 'event' ? item.event.event.kind : item.chunk);

describe('a follower', () => {
  test('gets every event once and in order while several write, and the end as the return value', async () => {
    const job = await openJob();
    const followers = [follow(job), follow(job)];
    await Promise.all(Array.from({ length: 300 }, (_, n) => job.tick(n)));
    await job.end();
    const ends = await Promise.all(followers.map(({ end }) => end));
    for (const { items } of followers) expect(seqs(items)).toEqual(Array.from({ length: 301 }, (_, i) => i + 1));
    expect(ends[0]).toMatchObject({
      job: job.job,
      state: 'done',
      end: { reason: 'COMPLETED', decidedBy: 'model' },
      text: null,
    });
  });

  test('goes on behind the event it names', async () => {
    const job = await openJob();
    for (let n = 0; n < 5; n += 1) await job.tick(n);
    await job.end();
    const { items, end } = follow(job, { after: 4 });
    await end;
    expect(seqs(items)).toEqual([5, 6]);
  });

  test.each([99, -1, 1.5, Number.NaN])('is told that the stream never reached %d', async (after) => {
    const job = await openJob();
    await expect(at.runs.events('default', job.job, { after }).next()).rejects.toBeInstanceOf(BadPosition);
  });

  test('that takes its time holds nothing up and loses nothing', async () => {
    const job = await openJob();
    const events = at.runs.events('default', job.job);
    expect((await events.next()).value).toMatchObject({ event: { seq: 1 } });
    for (let n = 0; n < 250; n += 1) await job.tick(n);
    await job.end();
    const seen: RunEvent[] = [];
    for await (const item of events) seen.push(item);
    expect(seqs(seen)).toEqual(Array.from({ length: 250 }, (_, i) => i + 2));
  });

  test('leaves when its signal is raised', async () => {
    const leave = new AbortController();
    const { end } = follow(await openJob(), { signal: leave.signal });
    leave.abort();
    expect(await end).toBeNull();
  });
});

describe('text that is being written', () => {
  test('comes in the order of its attempt, and never behind its message', async () => {
    const job = await openJob();
    const { items, end } = follow(job);
    await job.begin('a1');
    await job.write('a1', [
      [0, 'one '],
      [1, 'two '],
    ]);
    await until('the first pieces', () => items.some((item) => line(item) === 'two '));
    await job.write('a1', [[2, 'three']]);
    await until('the last piece', () => items.some((item) => line(item) === 'three'));
    await job.finish('a1');
    await job.write('a1', [[3, 'too late']]);
    await job.end();
    await end;
    expect(items.map(line)).toEqual(['job.submitted', 'sample.started', 'one ', 'two ', 'three', 'stream.ended']);
  });

  // Rows of two attempts may be committed out of the order of their ids: one position for both would skip some.
  test('of two attempts at once is whole for each', async () => {
    const job = await openJob();
    const { items, end } = follow(job);
    await job.begin('b1');
    await job.begin('b2');
    await Promise.all(
      ['b1', 'b2'].map(async (attempt) => {
        for (let n = 0; n < 50; n += 1) await job.write(attempt, [[n, `${attempt}.${n}`]]);
      }),
    );
    await until('all pieces', () => items.filter((item) => item.type === 'delta').length === 100);
    await job.end();
    await end;
    for (const attempt of ['b1', 'b2']) {
      const ns = items.flatMap((item) => (item.type === 'delta' && item.attempt === attempt ? [item.n] : []));
      expect(ns).toEqual(Array.from({ length: 50 }, (_, n) => n));
    }
  });
});
