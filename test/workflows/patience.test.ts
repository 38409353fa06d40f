import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { delta } from '../../activities/store/schema.ts';
import {
  C,
  callTools,
  chunks,
  type ChatRequest,
  countToolResults,
  D,
  F,
  hold,
  paced,
  type Reply,
  say,
  U,
  type WireName,
} from '../../testing/index.ts';
import { conversations } from '../support/conversations.ts';
import { inMs, only, turnHandle } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';
import { SHORT, STALL_MS, TROUBLES } from './troubles.ts';

const SLOW_DELTA_S = 3;

const talk = conversations();
let at: TestHouse;
beforeAll(async () => {
  at = await testHouse({
    rules: talk.rules,
    expectKey: true,
    others: [
      { name: 'short', patience: SHORT },
      { name: 'stalls', patience: { ...SHORT, transientDelaysMs: [], stallMs: STALL_MS } },
      { name: 'hasty', patience: { flushWaitMs: 50, usageWaitMs: 300 } },
      { name: 'capped', patience: SHORT, limits: { outputTokens: 100, raisedOutputTokens: 100 } },
      { name: 'chat', patience: SHORT, fallback: { provider: 'scripted', model: 'second' } },
      { name: 'responses', provider: 'responses', patience: SHORT, fallback: { model: 'second' } },
    ],
  });
  await at.house.database.db.execute(sql`
    create function slow_delta() returns trigger language plpgsql as
      $$ begin perform pg_sleep(${sql.raw(String(SLOW_DELTA_S))}); return new; end $$`);
  await at.house.database.db.execute(sql`
    create trigger slow_delta before insert on pawl.delta for each row
      when (new.chunk like 'Slowly%') execute function slow_delta()`);
});
afterAll(async () => {
  await at.close();
});

/** One job whose model answers by the number of the request; the last answer stays. */
async function play(name: string, agent: string, replies: readonly Reply[] | ((request: ChatRequest) => Reply)) {
  let n = 0;
  talk.on(name, (request) =>
    typeof replies === 'function' ? replies(request) : (replies[Math.min(n++, replies.length - 1)] as Reply),
  );
  const { session } = await at.submit(name, { agent });
  const end = await at.ended(session, 1, 55_000);
  const events = await at.events(session);
  const { events: history } = await turnHandle(at, `${session}/1`).fetchHistory();
  return {
    session,
    end,
    events,
    requests: talk.requestsOf(at.provider, name),
    transcript: await at.transcript(session),
    transitions: only(events, 'sample.started').map(({ transition }) => transition),
    rests: (history ?? []).flatMap(({ timerStartedEventAttributes: timer }) =>
      timer ? [inMs(timer.startToFireTimeout)] : [],
    ),
  };
}

type Played = Awaited<ReturnType<typeof play>>;

function lineOf(entry: Played['transcript'][number]): string {
  if (entry.kind === 'assistant') return `assistant: ${entry.text}`;
  return entry.kind === 'tool_result' ? `result: ${entry.isError ? 'error' : 'ok'}` : entry.kind;
}

describe.concurrent('a provider in trouble', () => {
  it.each(Object.entries(TROUBLES))('%s', async (name, { agent = 'short', replies, ...shown }) => {
    const { end, events, rests, transcript, session } = await play(name, agent, replies);
    const [reason, decidedBy, signal] = shown.end;
    expect([`${end.endReason}/${end.endDetail}`, end.endDecidedBy, end.endSignal]).toEqual([reason, decidedBy, signal]);
    expect(only(events, 'turn.ended', `${session}/1`)).toHaveLength(1);
    expect(rests.map((ms) => (ms >= 16 && ms <= 24 ? 'dice' : ms))).toEqual(shown.rests);
    if (shown.transcript) expect(transcript.map(lineOf)).toEqual(shown.transcript);
    if (end.endDetail !== 'provider_unavailable') return expect(end.endResumeAt).toBeNull();
    // From the decision on; the end was written a moment later.
    const { resumeMs = SHORT.resumeAfterMs } = shown;
    const fromEndMs = (end.endResumeAt?.getTime() ?? 0) - (end.endedAt?.getTime() ?? 0);
    expect(fromEndMs).toBeGreaterThan(resumeMs - 5_000);
    expect(fromEndMs).toBeLessThanOrEqual(resumeMs);
  });
});

describe.concurrent('a whole answer', () => {
  const late = (ms: number) =>
    paced(chunks([C({ content: 'Done.' }), F('stop'), U(100, 10), D]), { betweenChunksMs: ms });

  it('waits for its usage, up to a limit: what comes in time is counted, what does not is shown as missing', async () => {
    const [inTime, never] = await Promise.all([
      play('usage in time', 'short', [late(400)]),
      play('usage too late', 'hasty', [paced(late(0), { hold: hold(), holdAt: 2 })]),
    ]);
    expect(inTime.end.endUsage).toMatchObject({ inputTokens: 100, outputTokens: 10, complete: true });
    expect(never.end.endUsage).toMatchObject({ complete: false });
    expect(never.transcript.map(lineOf)).toEqual(['user', 'assistant: Done.']);
  });

  // The store takes three seconds for the text: with the default patience its message waits for it.
  it('waits for its streamed text to be stored, up to a limit; what comes later is taken away', async () => {
    const slowly = paced(say('Slowly said.'), { betweenChunksMs: 40 });
    const [patient, hasty] = await Promise.all([play('patient', 'short', [slowly]), play('hasty', 'hasty', [slowly])]);
    const tookMs = ({ end, requests }: Played) => (end.endedAt?.getTime() ?? 0) - (requests[0]?.openedAt ?? 0);
    expect(tookMs(patient)).toBeGreaterThanOrEqual(SLOW_DELTA_S * 1_000);
    expect(tookMs(hasty)).toBeLessThan(SLOW_DELTA_S * 1_000);
    for (const { end, transcript, session } of [patient, hasty]) {
      expect(end).toMatchObject({ endReason: 'COMPLETED' });
      expect(transcript.map(lineOf)).toEqual(['user', 'assistant: Slowly said.']);
      await until('nothing is written any more', async () => {
        const { rows } = await at.house.database.db.execute(sql`
          select 1 from pg_stat_activity
          where datname = current_database() and state = 'active' and query ilike 'insert into "pawl"."delta"%'`);
        return rows.length === 0;
      });
      const { db } = at.house.database;
      await until('no piece is left', async () => (await db.$count(delta, eq(delta.turn, `${session}/1`))) === 0);
    }
  });
});

describe.concurrent.each<WireName>(['chat', 'responses'])('the fallback over %s', (wire) => {
  it('gets nothing of the failed attempts, nor of reasoning that is another model’s; the user is told', async () => {
    const pieces = 'Half of a reply that nobody will read. '.split(' ').map((word) => C({ content: `${word} ` }));
    const overload = { error: { message: 'overloaded_error: try later', code: 529 } };
    const half = paced(chunks([...pieces, overload]), { betweenChunksMs: 30 });
    const { session, end, events, requests, transcript, transitions } = await play(
      `${wire} falls back`,
      wire,
      (request) => {
        if (request.model === 'second') return say('Done.', { reasoning: 'mine' });
        return countToolResults(request) === 0
          ? callTools([{ name: 'list_files', arguments: {} }], { text: 'I look.', reasoning: 'thought' })
          : half;
      },
    );
    expect(end).toMatchObject({ endReason: 'COMPLETED', endDetail: 'final_answer', endDecidedBy: 'model' });
    expect(transitions).toEqual([
      'opened',
      'tool_results',
      'retry_after_failure',
      'retry_after_failure',
      'model_switched',
    ]);
    expect(transcript.map(lineOf)).toEqual(['user', 'assistant: I look.', 'result: ok', 'assistant: Done.']);
    expect(requests.map(({ body }) => body.model)).toEqual([...Array<string>(4).fill('scripted'), 'second']);
    const field = wire === 'chat' ? 'reasoning_content' : 'reasoning_items';
    const reasoned = requests.map(({ body }) => body.messages.filter((entry) => entry[field] !== undefined).length);
    expect(reasoned).toEqual([0, 1, 1, 1, 0]);
    expect(JSON.stringify(requests.at(-1)?.sent)).not.toMatch(/thought|Half/);
    // Whoever follows the job sees what was shown taken back, and who goes on.
    expect(only(events, 'stream.ended').map(({ reason, failure }) => [reason, failure])).toEqual([
      ['tool_calls', null],
      ...Array<unknown>(3).fill(['error', 'overloaded']),
      ['stop', null],
    ]);
    expect(only(events, 'attempt.discarded')).toHaveLength(3);
    expect(only(events, 'model.switched')).toEqual([
      { kind: 'model.switched', layer: 'turn', from: 'scripted', to: 'second', cause: 'overloaded' },
    ]);
    const { db } = at.house.database;
    expect(await db.$count(delta, eq(delta.turn, `${session}/1`))).toBe(0);
  });
});
