import { randomBytes } from 'node:crypto';
import { and, asc, eq, sql } from 'drizzle-orm';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Deps } from '../../activities/deps.ts';
import type { HookInput } from '../../activities/gate/hook-types.ts';
import { commit, message, usage } from '../../activities/store/schema.ts';
import { ChainCache } from '../../activities/store/transcript.ts';
import { defineTool } from '../../activities/tools/define-tool.ts';
import { compact } from '../../activities/turn/compact.ts';
import {
  callTools,
  type ChatRequest,
  hold,
  paced,
  type RecordedRequest,
  type Reply,
  say,
  status,
} from '../../testing/index.ts';
import type { RecordedEvent } from '../../workflows/core/journal.ts';
import { turnState } from '../../workflows/messages.ts';
import { cancelTurn, only, turnHandle } from '../support/engine-facts.ts';
import { billed, isSummary, ramble, step, tokensOf } from '../support/long-talk.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

const big = defineTool({
  name: 'big',
  description: 'Says a lot.',
  input: z.strictObject({}),
  effect: 'none',
  run: () => Promise.resolve({ isError: false, text: 'y'.repeat(20_000) }),
});

type Play = (request: ChatRequest) => Reply;
/** By a word that the objective has, so that it is in every request, that for a summary too. */
const plays = new Map<string, Play>();
const isOf = (request: ChatRequest, word: string) => JSON.stringify(request.messages).includes(word);
const rules: Play = (request) => {
  const found = [...plays].find(([word]) => isOf(request, word));
  return found ? billed(found[1](request), request) : status(400, 'nobody wrote this conversation');
};

const told: HookInput[] = [];
let at: TestHouse;
beforeAll(async () => {
  const small = { outputTokens: 1_000, contextTokens: 40_000 };
  at = await testHouse({
    rules,
    expectKey: true,
    tools: [big],
    definition: {
      hooks: (['PreCompact', 'PostCompact'] as const).map((event) => ({
        event,
        run: (input: HookInput) => void told.push(input),
      })),
    },
    others: [
      { name: 'small', limits: small },
      { name: 'small-off', limits: small, compaction: false },
    ],
  });
});
afterAll(async () => {
  // Nobody has ever sent a call without its result, also not in a request for a summary.
  expect(at.provider.faults).toEqual([]);
  await at.close();
});

/** One turn whose model does as `play` says; the word is part of the task. */
async function submit(play: (request: ChatRequest, word: string) => Reply, agent = 'small') {
  const word = `task-${randomBytes(5).toString('hex')}`;
  plays.set(word, (request) => play(request, word));
  const { session } = await at.submit(`Do ${word}.`, { agent });
  return { session, turn: `${session}/1`, word };
}

/** Long enough for a machine that does much else. */
const PATIENCE_MS = 150_000;
const ended = (session: string) => at.ended(session, 1, PATIENCE_MS);

const requestsOf = (word: string): RecordedRequest[] => at.provider.requests.filter(({ body }) => isOf(body, word));
const kindsOf = (word: string) => requestsOf(word).map(({ body }) => (isSummary(body) ? 'summary' : 'sample'));

/** Steps until `count` samples were answered, then the end. */
function working(count: number, chars = 23_000) {
  let done = 0;
  return (request: ChatRequest): Reply => {
    if (isSummary(request)) return say('It looked around.');
    done += 1;
    return done <= count ? step(done, chars) : say('Finished.');
  };
}

/** How many messages lie behind this one, with it. */
async function chainLength(head: string): Promise<number> {
  const [row] = await at.house.database.db.select({ depth: message.depth }).from(message).where(eq(message.hash, head));
  const { rows } = await at.house.database.db.execute(sql`
    with recursive back as (
      select hash, parent from pawl.message where hash = ${head}
      union all select m.hash, m.parent from pawl.message m join back on m.hash = back.parent
    ) select hash from back`);
  expect(row?.depth).toBe(rows.length);
  return rows.length;
}

const transitions = (events: readonly RecordedEvent[]) => only(events, 'sample.started').map((each) => each.transition);

describe.concurrent('a conversation that becomes too long', { timeout: PATIENCE_MS }, () => {
  it('is told to hooks before and after it is summarized, once each', async () => {
    const { session, turn } = await submit(working(9));
    await ended(session);
    const summaries = only(await at.events(session), 'context.compacted');
    expect(summaries.length).toBeGreaterThan(0);
    const heard = (event: string) => told.filter((input) => input.session === session && input.event === event);
    await until('all are told', () => heard('PostCompact').length === summaries.length);
    const before = heard('PreCompact');
    expect(before).toEqual(summaries.map(() => expect.objectContaining({ turn, cause: 'window' })));
    expect(new Set(before.map(({ id }) => id)).size).toBe(summaries.length);
    expect(heard('PostCompact').map(({ id, afterTokens }) => [id, afterTokens])).toEqual(
      summaries.map(({ message: summary, afterTokens }) => [`post_compact/${summary}`, afterTokens]),
    );
  });

  it('is summarized, and the turn completes; the newest rounds stay, the chain behind stays', async () => {
    const { session, turn, word } = await submit(working(9));
    expect(await ended(session)).toMatchObject({ endDetail: 'final_answer', endStep: 9 });
    const sent = kindsOf(word);
    expect(sent.filter((kind) => kind === 'sample')).toHaveLength(10);
    const first = sent.indexOf('summary');
    expect(first).toBeGreaterThan(3);
    const [summary, after] = requestsOf(word)
      .slice(first, first + 2)
      .map(({ body }) => body);
    // Tool-free: no list, no calls, one message.
    expect([summary?.tools, summary?.messages.map(({ role }) => role)]).toEqual([undefined, ['system', 'user']]);
    const texts = after!.messages.map(({ role, content }) => `${role} ${String(content).slice(0, 19)}`);
    expect(texts.slice(0, 2)).toEqual(['system You are tested.', 'user [The conversation u']);
    expect(String(after?.messages[1]?.content)).toContain(`## Objective\nDo ${word}.\n\n## Summary\nIt looked around.`);
    expect(after?.messages.slice(2).map(({ role }) => role)).toEqual(['assistant', 'tool']);
    for (const { body } of requestsOf(word)) expect(tokensOf(body)).toBeLessThan(40_000 - 3_000);

    const events = await at.events(session);
    const begun = events.findIndex(({ event }) => event.kind === 'compaction.started');
    expect(events.slice(begun - 1, begun + 4).map(({ event }) => event.kind)).toEqual([
      'batch.ended',
      'compaction.started',
      'stream.ended',
      'context.compacted',
      'sample.started',
    ]);
    expect(transitions(events).filter((each) => each === 'compacted')).toHaveLength(
      sent.filter((kind) => kind === 'summary').length,
    );
    const [told] = only(events, 'context.compacted');
    expect(told).toMatchObject({ kept: 2, replaced: expect.any(Number) });
    expect(told!.afterTokens).toBeLessThan(told!.beforeTokens / 2);
    // Its stream is nobody's words: no client may show it as a reply.
    expect(only(events, 'stream.ended').filter(({ message: hash }) => hash === told!.message)).toEqual([]);

    const { db } = at.house.database;
    const rows = await db.select().from(usage).where(eq(usage.turn, turn)).orderBy(asc(usage.openedAt));
    expect(rows.map(({ outcome }) => outcome)).toEqual(
      sent.map((kind) => (kind === 'summary' ? 'compacted' : 'reply')),
    );
    expect(rows.every(({ complete }) => complete)).toBe(true);
    const end = await ended(session);
    expect(end.endUsage?.inputTokens).toBe(rows.reduce((sum, row) => sum + (row.inputTokens ?? 0), 0));
    // People can still read all of it.
    expect(await chainLength(end.head)).toBe(1 + 10 + 9 + only(events, 'context.compacted').length);
  });

  // The cut of the report would fall between two results of one message.
  it('with large results: a round is kept or summarized as a whole', async () => {
    let done = 0;
    const big = { name: 'big', arguments: {} };
    // Never the same twice in a row, which would be no progress.
    const calls = (n: number) => [big, big, { name: 'list_files', arguments: { depth: 1 + (n % 2) } }];
    const { session, word } = await submit((request) => {
      if (isSummary(request)) return say('It read.');
      done += 1;
      return done > 16 ? say('Finished.') : callTools(calls(done), { text: ramble(done, 3_600) });
    });
    expect(await ended(session)).toMatchObject({ endDetail: 'final_answer' });
    expect(kindsOf(word)).toContain('summary');
  });

  it('steering that arrives meanwhile waits for the sample that follows', async () => {
    const writing = hold();
    const play = working(9);
    const { session, turn, word } = await submit((request) =>
      isSummary(request) ? paced(say('So far.'), { hold: writing }) : play(request),
    );
    await writing.reached;
    const input = await at.send(session, 'steer', 'and be quick');
    await until('the turn has it', async () => (await turnHandle(at, turn).query(turnState)).inbox.includes(input));
    writing.release();
    await ended(session);
    const at1 = kindsOf(word).indexOf('summary');
    const [summary, after] = requestsOf(word)
      .slice(at1, at1 + 2)
      .map(({ body }) => body);
    expect(isOf(summary!, 'and be quick')).toBe(false);
    expect(after?.messages.at(-1)).toEqual({ role: 'user', content: 'and be quick' });
    const joined = only(await at.events(session), 'input.joined').filter((each) => each.input === input);
    expect(joined).toHaveLength(1);
  });

  it('a cancel meanwhile cuts the request: ABORTED in the phase compacting', async () => {
    const writing = hold();
    const play = working(20);
    const { session, turn, word } = await submit((request) =>
      isSummary(request) ? paced(say('So far it is.'), { hold: writing, holdAt: 2 }) : play(request),
    );
    await writing.reached;
    await cancelTurn(at, turn, 'somebody');
    expect(await ended(session)).toMatchObject({ endDetail: 'user_cancel', endPhase: 'compacting' });
    expect(requestsOf(word).at(-1)?.closedAt).not.toBeNull();
    expect((await at.transcript(session)).map(({ kind }) => kind)).not.toContain('compaction');
    const rows = await at.house.database.db
      .select()
      .from(usage)
      .where(and(eq(usage.turn, turn), eq(usage.outcome, 'cut')));
    expect(rows).toHaveLength(1);
  });

  it('a failure that passes is rested out; the bytes and their key stay the same', async () => {
    const failures = [status(503, ''), status(429, '', { 'retry-after': '1' })];
    const play = working(7);
    const { session, turn, word } = await submit((request) =>
      isSummary(request) ? (failures.shift() ?? say('So far.')) : play(request),
    );
    expect(await ended(session)).toMatchObject({ endDetail: 'final_answer' });
    const tries = requestsOf(word).filter(({ body }) => isSummary(body));
    expect(tries).toHaveLength(3);
    expect(new Set(tries.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
    const { events } = await turnHandle(at, turn).fetchHistory();
    expect(events?.filter(({ timerStartedEventAttributes: timer }) => timer)).toHaveLength(2);
  });

  // Trap: a refusal that stands for the conversation would be all that the model knows of it.
  it('a refusal is no summary: asked for anew, under another key', async () => {
    const written = [say('I can’t help with that.', { finish: 'content_filter' }), say('So far it is.')];
    const play = working(7);
    const { session, word } = await submit((request) =>
      isSummary(request) ? (written.shift() ?? say('Written too often.')) : play(request),
    );
    expect(await ended(session)).toMatchObject({ endDetail: 'final_answer' });
    const tries = requestsOf(word).filter(({ body }) => isSummary(body));
    expect(new Set(tries.map(({ headers }) => headers['idempotency-key'])).size).toBe(2);
    const summaries = (await at.transcript(session)).flatMap((each) => (each.kind === 'compaction' ? [each.text] : []));
    expect(summaries.map((text) => [text.includes('So far it is.'), text.includes('help with that')])).toEqual([
      [true, false],
    ]);
  });

  it('one that stays is not tried again on the same context; three in a row end the turn', async () => {
    const play = working(50);
    const { session, word } = await submit((request) =>
      isSummary(request) ? status(400, { error: { message: 'no' } }) : play(request),
    );
    expect(await ended(session)).toMatchObject({
      endReason: 'MAX_TOKENS',
      endDetail: 'context_limit',
      endPhase: 'compacting',
      endSignal: { name: 'retries_spent', cause: 'compaction_invalid_request', used: 1 },
    });
    expect(kindsOf(word).join(' ')).toMatch(/sample summary sample summary sample summary$/);
    expect(transitions(await at.events(session)).filter((each) => each === 'not_compacted')).toHaveLength(2);
  });

  it('off: what fits is sampled, then the end; nobody asks for a summary', async () => {
    const { session, word } = await submit(working(50), 'small-off');
    const end = await ended(session);
    expect(end).toMatchObject({ endReason: 'MAX_TOKENS', endDetail: 'context_limit', endPhase: 'sampling' });
    expect(end.endSignal).toMatchObject({ name: 'limit', limit: 'context_tokens', allowed: 40_000 });
    expect(kindsOf(word)).not.toContain('summary');
    // The results of the last round are kept.
    expect((await at.transcript(session)).at(-1)).toMatchObject({ kind: 'tool_result' });
  });
});

const tooLong = (tokens: number) =>
  status(400, {
    error: { message: `This model's maximum context length is ${tokens} tokens`, code: 'context_length_exceeded' },
  });

describe.concurrent('a provider that says that it does not fit', { timeout: PATIENCE_MS }, () => {
  it('compacted and sent again with another key; its window is learned', async () => {
    const play = working(12, 8_000);
    const { session, word } = await submit((request) => {
      return tokensOf(request) > 10_000 ? tooLong(10_000) : play(request);
    }, 'tester');
    expect(await ended(session)).toMatchObject({ endDetail: 'final_answer' });
    const told = transitions(await at.events(session));
    expect(told.filter((each) => each === 'overflow_compacted')).toHaveLength(1);
    expect(told.filter((each) => each === 'compacted').length).toBeGreaterThan(0);
    const keys = requestsOf(word).map(({ headers }) => headers['idempotency-key']);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('twice without a success between: MAX_TOKENS/context_limit', async () => {
    let samples = 0;
    const { session, word } = await submit((request) => {
      if (isSummary(request)) return say('So far.');
      samples += 1;
      return samples > 2 ? tooLong(900_000) : step(samples, 4_000);
    });
    expect(await ended(session)).toMatchObject({
      endReason: 'MAX_TOKENS',
      endDetail: 'context_limit',
      endSignal: { name: 'provider_answer', cause: 'overflow' },
    });
    expect(kindsOf(word)).toEqual(['sample', 'sample', 'sample', 'summary', 'sample']);
  });

  it('too large: once more without images, and the transcript says so; once more shorter; then ERROR/invalid_request', async () => {
    const image = `data:image/png;base64,${'A'.repeat(3_000)}`;
    const word = `task-${randomBytes(5).toString('hex')}`;
    plays.set(word, (request) => (isOf(request, 'AAAA') ? status(413, '') : say('I can not see it.')));
    const { session } = await at.submit(`Look at ${image} of ${word}`, { agent: 'small' });
    expect(await ended(session)).toMatchObject({ endDetail: 'final_answer' });
    expect(requestsOf(word)).toHaveLength(2);
    expect((await at.transcript(session)).map(({ kind }) => kind)).toEqual(['user', 'reminder', 'assistant']);
    const never = await submit(() => status(413, ''));
    expect(await ended(never.session)).toMatchObject({
      endReason: 'ERROR',
      endDetail: 'invalid_request',
      endSignal: { cause: 'too_large', status: 413 },
    });
    expect(kindsOf(never.word)).toEqual(['sample', 'sample', 'summary']);
  });
});

// An activity that commits and then loses its answer runs again: no second summary, no second bill.
it('an attempt that repeats a compaction finds what was committed', { timeout: PATIENCE_MS }, async () => {
  const { session, turn, word } = await submit(working(7));
  await ended(session);
  const { db } = at.house.database;
  const rows = await db
    .select()
    .from(usage)
    .where(and(eq(usage.turn, turn), eq(usage.outcome, 'compacted')));
  const [kept] = await db.select().from(commit).where(eq(commit.key, rows[0]!.sample));
  const { events } = await turnHandle(at, turn).fetchHistory();
  const asked = events?.find(({ activityTaskScheduledEventAttributes: it }) => it?.activityType?.name === 'compact');
  const payload = asked!.activityTaskScheduledEventAttributes!.input!.payloads![0]!.data!;
  const deps: Pick<Deps, 'database' | 'chains' | 'log'> & { readonly hooks: Pick<Deps['hooks'], 'has'> } = {
    database: at.house.database,
    chains: new ChainCache(),
    log: pino({ level: 'silent' }),
    hooks: { has: () => false },
  };
  const sent = requestsOf(word).length;
  const request = JSON.parse(Buffer.from(payload).toString()) as Parameters<typeof compact>[1];
  await db.execute(`update pawl.turn set ended_at = null where id = '${turn}'`);
  expect(await compact(deps as unknown as Deps, request)).toEqual(kept!.result);
  await db.execute(`update pawl.turn set ended_at = clock_timestamp() where id = '${turn}'`);
  expect(requestsOf(word)).toHaveLength(sent);
});
