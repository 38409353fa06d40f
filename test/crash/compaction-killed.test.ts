import { asc, eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { readEvents } from '../../activities/store/events.ts';
import { message, usage } from '../../activities/store/schema.ts';
import {
  type ChatRequest,
  type Reply,
  say,
  type ScriptedProvider,
  startScriptedProvider,
} from '../../testing/index.ts';
import { only } from '../support/engine-facts.ts';
import { billed, isSummary, step } from '../support/long-talk.ts';
import { CrashRun } from './crash-run.ts';
import type { Boundary } from './kill-at.ts';

const STEPS = 7;

let provider: ScriptedProvider;
beforeAll(async () => {
  provider = await startScriptedProvider({ expectKey: true, rules: (request) => billed(replyTo(request), request) });
});
afterAll(() => provider.close());

/** The step after the newest that it can still see: the newest rounds are never summarized. */
function replyTo(request: ChatRequest): Reply {
  if (isSummary(request)) return say('It looked around.');
  const seen = [...JSON.stringify(request.messages).matchAll(/Step (\d+)\./g)].map(([, n]) => Number(n));
  const n = Math.max(0, ...seen) + 1;
  return n <= STEPS ? step(n, 23_000) : say('Finished.');
}

const DEATHS: readonly Boundary[] = [
  { when: 'after', at: 'openSummary' },
  { when: 'before', at: 'closeSummary' },
  { when: 'after', at: 'closeSummary' },
];

it('a worker killed before a summary is asked for, before it is kept, and when it is kept: it is made once, and each request is on the bill', {
  timeout: 280_000,
}, async () => {
  const unused = () => {
    throw new Error('this provider says one thing only');
  };
  const servers = { temporalAddress: inject('temporalAddress'), databaseUrl: inject('databaseUrl') };
  const own = { provider, hold: unused, play: unused };
  const run = await CrashRun.prepare({ provider: own, servers, contextTokens: 40_000 });
  try {
    const { session } = await run.submit();
    for (const death of DEATHS) await run.dies(run.worker(death), death);
    run.worker();
    await run.ended();

    const { db } = run.house.database;
    const events = await readEvents(db, session, 0, 10_000);
    expect(only(events, 'turn.ended')).toMatchObject([{ reason: 'COMPLETED', detail: 'final_answer', step: STEPS }]);
    const summaries = only(events, 'context.compacted').map((each) => each.message);
    const kept = await db.select({ hash: message.hash }).from(message).where(eq(message.kind, 'compaction'));
    expect(kept.map(({ hash }) => hash)).toEqual(summaries);
    expect(summaries).toHaveLength(1);

    const attempts = only(events, 'compaction.started').map(({ attempt }) => attempt);
    const rows = await db.select().from(usage).orderBy(asc(usage.openedAt));
    const bill = rows.filter(({ attempt }) => attempts.includes(attempt));
    expect(bill.map(({ outcome, complete, wasted }) => [outcome, complete, wasted])).toEqual([
      ['lost', false, true],
      ['lost', false, true],
      ['compacted', true, false],
    ]);
    expect(new Set(bill.map(({ sample }) => sample)).size).toBe(1);
    expect(rows.every(({ closedAt }) => closedAt !== null)).toBe(true);
    // The first worker died before it asked; both others asked for the same thing.
    expect(provider.requests.filter(({ body }) => isSummary(body))).toHaveLength(2);
  } finally {
    await run.close();
  }
});
