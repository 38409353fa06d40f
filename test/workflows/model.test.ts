import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { asc, eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { delta, usage } from '../../activities/store/schema.ts';
import {
  C,
  callTools,
  type ChatRequest,
  chunks,
  countToolResults,
  D,
  F,
  paced,
  type Reply,
  say,
  status,
  T,
  U,
  type WireName,
  X,
} from '../../testing/index.ts';
import { conversations } from '../support/conversations.ts';
import { only } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';

const talk = conversations();
const folder = mkdtempSync(join(tmpdir(), 'pawl-keys-'));
const keyFile = join(folder, 'key');
let at: TestHouse;
beforeAll(async () => {
  writeFileSync(keyFile, 'key-number-none\n');
  at = await testHouse({
    rules: (request, headers) => talk.rules({ ...request, authorization: headers.authorization }),
    expectKey: true,
    providers: (baseUrl) => ({ guarded: { baseUrl, apiKeyFile: keyFile } }),
    others: [
      { name: 'chat', limits: { outputTokens: 512, raisedOutputTokens: 512 } },
      { name: 'responses', provider: 'responses', limits: { outputTokens: 512, raisedOutputTokens: 512 } },
      { name: 'guarded', provider: 'guarded' },
    ],
  });
});
afterAll(async () => {
  await at.close();
  rmSync(folder, { recursive: true });
});

const WIRES: readonly WireName[] = ['chat', 'responses'];

/** One job whose model answers by the number of the request, counted from 0; the last answer stays. */
async function play(agent: string, ...replies: readonly (Reply | ((request: ChatRequest) => Reply))[]) {
  const text = `${agent}: ${expect.getState().currentTestName}`;
  let n = 0;
  talk.on(text, (request) => {
    const reply = replies[Math.min(n, replies.length - 1)] as (typeof replies)[number];
    n += 1;
    return typeof reply === 'function' ? reply(request) : reply;
  });
  const { session } = await at.submit(text, { agent });
  const end = await at.ended(session, 1, 60_000);
  const events = await at.events(session);
  const requests = talk.requestsOf(at.provider, text);
  expect(requests.every(({ wire }) => wire === (agent === 'responses' ? 'responses' : 'chat'))).toBe(true);
  return { session, end, events, requests, transcript: await at.transcript(session) };
}

describe.each(WIRES)('over %s', (wire) => {
  describe('a model that repeats itself', () => {
    const sentence = 'I will look at the file again to be sure that it is right. ';
    const endless = paced(chunks([C({ content: sentence.repeat(200) })]), { endless: true });

    it('is stopped twice and asked anew, under new keys; then what it says is taken as it is', async () => {
      const reply = sentence.repeat(120);
      const { session, end, events, requests, transcript } = await play(wire, endless, endless, say(reply));
      expect(end).toMatchObject({ endReason: 'COMPLETED', endDetail: 'final_answer', endDecidedBy: 'model' });
      expect(transcript.map((message) => message.kind)).toEqual(['user', 'assistant']);
      expect(transcript[1]).toMatchObject({ text: reply });
      expect(requests).toHaveLength(3);
      expect(new Set(requests.map(({ headers }) => headers['idempotency-key'])).size).toBe(3);
      await Promise.all(requests.map(({ settled }) => settled));
      expect(requests.map(({ closedAt }) => closedAt !== null)).toEqual([true, true, false]);
      expect(only(events, 'sample.started').map(({ transition }) => transition)).toEqual([
        'opened',
        'resampled_doom_loop',
        'resampled_doom_loop',
      ]);
      const ends = only(events, 'stream.ended');
      expect(ends.map(({ reason, failure }) => [reason, failure])).toEqual([
        ['discarded', 'doom_loop'],
        ['discarded', 'doom_loop'],
        ['stop', null],
      ]);
      expect(only(events, 'attempt.discarded').map(({ attempt }) => attempt)).toEqual(
        ends.slice(0, 2).map(({ attempt }) => attempt),
      );
      const rows = await at.house.database.db
        .select()
        .from(usage)
        .where(eq(usage.session, session))
        .orderBy(asc(usage.openedAt));
      expect(rows.map(({ outcome, wasted, complete }) => [outcome, wasted, complete])).toEqual([
        ['doom_loop', true, false],
        ['doom_loop', true, false],
        ['reply', false, true],
      ]);
      expect(await at.house.database.db.$count(delta, eq(delta.turn, `${session}/1`))).toBe(0);
      // Incomplete is shown as incomplete, never as zero.
      expect(end.endUsage).toMatchObject({ complete: false });
    });

    it('and never stops: the end has its name, and the connections are closed', async () => {
      const { end, events, requests } = await play(wire, endless);
      expect(end).toMatchObject({ endReason: 'MAX_TOKENS', endDetail: 'output_limit', endDecidedBy: 'runtime' });
      expect(
        only(events, 'stream.ended')
          .slice(0, 3)
          .map(({ reason }) => reason),
      ).toEqual(['discarded', 'discarded', 'length']);
      await Promise.all(requests.map(({ settled }) => settled));
      expect(requests.every(({ closedAt }) => closedAt !== null)).toBe(true);
    });
  });

  it('what a call got wrong is its result, and the turn goes on', async () => {
    const calls = chunks([
      T(0, 'a1', 'list_files', ''),
      T(1, 'a2', 'no_such_tool', '{}'),
      T(2, 'a3', 'read_file', ''),
      T(3, 'a4', 'read_file', '[]'),
      T(4, 'a5', 'read_file', 'garbage'),
      T(5, 'a6', 'read_file', '{"path":"a"}{"path":"b"}'),
      T(6, 'a7', 'list_files', 'null'),
      F('stop'),
      U(100, 10),
      D,
    ]);
    const { end, transcript, requests } = await play(wire, calls, say('Done.'));
    expect(end).toMatchObject({ endReason: 'COMPLETED', endStep: 1 });
    const results = transcript.flatMap((message) => (message.kind === 'tool_result' ? [message] : []));
    expect(results.map(({ isError }) => isError)).toEqual([false, true, true, true, true, true, true]);
    expect(results[1]?.text).toContain('no_such_tool');
    expect(results[2]?.text).toContain('path');
    expect(requests).toHaveLength(2);
  });

  it('ids that repeat, in one message and over steps, are told apart on the wire', async () => {
    const twice = chunks([
      T(0, 'same', 'list_files', '{}'),
      T(1, 'same', 'list_files', '{"path":"."}'),
      F('tool_calls'),
      U(100, 10),
      D,
    ]);
    const { end, requests } = await play(wire, twice, twice, say('Done.'));
    expect(end).toMatchObject({ endReason: 'COMPLETED', endStep: 2 });
    const sent = requests.at(-1)?.body.messages.flatMap((message) => message.tool_calls ?? []) ?? [];
    expect(sent).toHaveLength(4);
    expect(new Set(sent.map(({ id }) => id)).size).toBe(4);
  });

  it('a call whose stream was cut never runs; the request is made again under its key', async () => {
    const cut = chunks([T(0, 'a1', 'write_file', '{"path":"a.txt","content":"x"}'), X]);
    const { end, events, requests } = await play(wire, cut, say('Done.'));
    expect(end).toMatchObject({ endReason: 'COMPLETED', endStep: 0 });
    expect(only(events, 'call.requested')).toEqual([]);
    expect(requests).toHaveLength(2);
    expect(new Set(requests.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
  });

  it('a call at the output limit does not run', async () => {
    const cut = chunks([T(0, 'a1', 'write_file', '{"path":"a.txt","content":"x"}'), F('length'), U(100, 10), D]);
    const { end, events, transcript } = await play(wire, cut, say('Done.'));
    expect(end).toMatchObject({ endReason: 'COMPLETED' });
    expect(only(events, 'call.started')).toEqual([]);
    expect(transcript[2]).toMatchObject({ kind: 'tool_result', isError: true });
  });

  it('calls announced that never come are asked for again, at most twice', async () => {
    const { end, requests } = await play(wire, chunks([F('tool_calls'), U(100, 10), D]));
    expect(end).toMatchObject({ endReason: 'ERROR', endDetail: 'model' });
    expect(requests).toHaveLength(3);
  });
});

it('reasoning is kept with its message and goes back on each later step', async () => {
  const read = (n: number) => callTools([{ name: 'list_files', arguments: {} }], { reasoning: `thought ${n}` });
  const { end, requests } = await play('responses', read(0), read(1), say('Done.', { reasoning: 'thought 2' }));
  expect(end).toMatchObject({ endReason: 'COMPLETED', endStep: 2 });
  const sealed = (requests.at(-1)?.body.messages ?? []).flatMap(
    (message) => (message['reasoning_items'] as { encrypted_content: string }[] | undefined) ?? [],
  );
  expect(sealed.map((item) => item.encrypted_content)).toEqual(['sealed:thought 0', 'sealed:thought 1']);
});

// A key that is rotated while a turn runs: each refusal is a new incident, since a success lies in between.
it('a 401 reads the key again from its file; four refusals in one turn are four incidents', async () => {
  const guarded = (request: ChatRequest) => {
    const step = countToolResults(request);
    if (request['authorization'] === `Bearer key-number-${step}`) {
      return step < 3 ? callTools([{ name: 'list_files', arguments: {} }]) : say('Done.');
    }
    writeFileSync(keyFile, `key-number-${step}\n`);
    return status(401, { error: { message: 'Incorrect API key provided' } });
  };
  const { end, requests, events } = await play('guarded', guarded);
  expect(end).toMatchObject({ endReason: 'COMPLETED', endStep: 3 });
  expect(requests.map(({ headers }) => headers.authorization)).toEqual([
    'Bearer key-number-none',
    'Bearer key-number-0',
    'Bearer key-number-0',
    'Bearer key-number-1',
    'Bearer key-number-1',
    'Bearer key-number-2',
    'Bearer key-number-2',
    'Bearer key-number-3',
  ]);
  expect(only(events, 'stream.ended').filter(({ failure }) => failure === 'auth')).toHaveLength(4);
});
