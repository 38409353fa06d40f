import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createApp } from '../../../client/http/app.ts';
import { JobPageSchema, JobWithResult, SubmittedSchema } from '../../../client/http/schemas.ts';
import { type HttpServer, startHttp } from '../../../client/http/start.ts';
import { createRuns, type Runs } from '../../../client/index.ts';
import { callTools, hold, paced, say } from '../../../testing/index.ts';
import { conversations } from '../../support/conversations.ts';
import { type TestHouse, testHouse } from '../../support/test-house.ts';
import { until } from '../../support/until.ts';
import { readSse } from './read-sse.ts';

const talk = conversations();
let at: TestHouse;
let runs: Runs;
let server: HttpServer;
beforeAll(async () => {
  at = await testHouse({ rules: talk.rules });
  runs = createRuns(at.house);
  const started = await startHttp({ app: createApp(runs, { heartbeatMs: 200 }), port: 4900, portAskedByName: false });
  if (started.kind !== 'listening') throw new Error(started.kind);
  ({ server } = started);
});
afterAll(async () => {
  await server.close();
  await at.close();
});

async function submit(text: string, key: string, more: object = {}) {
  return await fetch(`${server.url}/v1/jobs`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify({ text, ...more }),
  });
}

async function submitted(text: string) {
  return SubmittedSchema.parse(await (await submit(text, `key of ${text}`)).json());
}

const eventsOf = (id: string, after?: number) =>
  readSse(`${server.url}/v1/jobs/${id}/events`, after === undefined ? {} : { 'last-event-id': String(after) });

describe('one key', () => {
  // Case 45: two requests after a lost response, at once.
  test('sent many times at once is one job', async () => {
    talk.on('same ticket', () => say('Done.'));
    const answers = await Promise.all(Array.from({ length: 6 }, () => submit('same ticket', 'many')));
    const bodies = await Promise.all(answers.map(async (answer) => SubmittedSchema.parse(await answer.json())));
    expect(new Set(bodies.map(({ id }) => id)).size).toBe(1);
    expect(bodies.filter(({ isNew }) => isNew)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(5);
  });

  test('with the same fields in another order is the same job, with another text a conflict', async () => {
    talk.on('ordered', () => say('Done.'));
    const send = (body: string) =>
      fetch(`${server.url}/v1/jobs`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': 'order' },
        body,
      });
    expect((await send('{"text":"ordered","ticket":"T-1"}')).status).toBe(201);
    expect((await send('{"ticket":"T-1","text":"ordered"}')).status).toBe(200);
    expect((await submit('ordered', 'order', { ticket: 'T-2' })).status).toBe(409);
  });
});

describe('a job', () => {
  test('can be followed from its first event to its end, and resumed anywhere', async () => {
    const steps = [callTools([{ name: 'list_files', arguments: {} }], { text: 'I look.' }), say('All is well.')];
    talk.on('follow me', (request) => steps[request.messages.filter(({ role }) => role === 'tool').length]!);
    const { id } = await submitted('follow me');
    const all = await (await eventsOf(id)).all();
    const numbered = all.filter((frame) => frame.id !== undefined);
    expect(numbered.map((frame) => Number(frame.id))).toEqual(numbered.map((_, i) => i + 1));
    // The session's own rest comes a moment after the job's end, and may or may not be seen.
    const kinds = numbered.map(({ event }) => event).filter((kind) => kind !== 'driver.ended');
    expect(kinds.indexOf('turn.ended')).toBe(kinds.length - 1);
    const messages = numbered.flatMap(({ event, data }) => (event === 'stream.ended' ? [data.text] : []));
    expect(messages).toEqual(['I look.', 'All is well.']);
    expect(all.at(-1)).toMatchObject({
      event: 'end',
      data: { state: 'done', text: 'All is well.', end: { reason: 'COMPLETED' } },
    });
    const rest = await (await eventsOf(id, 5)).all();
    expect(rest.filter((frame) => frame.id !== undefined).slice(0, numbered.length - 5)).toEqual(numbered.slice(5));
  });

  test('brings its own schema, and has an answer that fits it', async () => {
    talk.on('as data', () => callTools([{ name: 'StructuredOutput', arguments: { verdict: 'ok' } }]));
    const outputSchema = { type: 'object', properties: { verdict: { const: 'ok' } }, required: ['verdict'] };
    const { id } = SubmittedSchema.parse(await (await submit('as data', 'schema 1', { outputSchema })).json());
    const frames = await (await eventsOf(id)).all();
    const expected = { reason: 'COMPLETED', structuredOutput: { value: { verdict: 'ok' } }, contract: null };
    expect(frames.at(-1)).toMatchObject({ event: 'end', data: { state: 'done', end: expected } });
    const job = JobWithResult.parse(await (await fetch(`${server.url}/v1/jobs/${id}`)).json());
    expect(job.end).toMatchObject(expected);
    // The schema is part of the body: another one under the same key is another job.
    expect((await submit('as data', 'schema 1', { outputSchema })).status).toBe(200);
    expect((await submit('as data', 'schema 1', { outputSchema: { type: 'object' } })).status).toBe(409);
  });

  test('with a schema that nobody could judge by is refused, with what to do', async () => {
    const answer = await submit('bad schema', 'schema 2', { outputSchema: { type: 'object', required: 'verdict' } });
    expect(answer.status).toBe(422);
    expect(await answer.json()).toMatchObject({
      type: 'urn:pawl:problem:schema-refused',
      detail: expect.stringMatching(
        /^The output schema can’t be used: it is no valid JSON Schema: .*required.*array/,
      ) as string,
    });
  });

  test('that is done and read to its last event has nothing left to send', async () => {
    talk.on('short', () => say('Done.'));
    const { id } = await submitted('short');
    const { session } = JobWithResult.parse(await (await fetch(`${server.url}/v1/jobs/${id}`)).json());
    await (await eventsOf(id)).all();
    const last = await until('the session rests', async () => {
      const newest = (await at.events(session)).at(-1);
      return newest?.event.kind === 'driver.ended' && newest.seq;
    });
    expect((await eventsOf(id, last)).status).toBe(204);
    expect((await eventsOf(id, last + 100)).status).toBe(400);
  });

  test('sends its text while it is written, and comments while it is silent', async () => {
    const stop = hold();
    talk.on('slow', () => paced(say('One two three'), { hold: stop, holdAt: 2 }));
    const { id } = await submitted('slow');
    const stream = await eventsOf(id);
    await stream.until(({ event }) => event === 'delta');
    await stream.until(({ comment }) => comment !== undefined);
    stop.release();
    const rest = await stream.all();
    expect(rest.find(({ event }) => event === 'stream.ended')!.data).toMatchObject({ text: 'One two three' });
  });

  test('can be cancelled, and says by whom', async () => {
    const stop = hold();
    talk.on('endless', () => paced(say('One two three'), { hold: stop, holdAt: 1 }));
    const { id } = await submitted('endless');
    await stop.reached;
    const answer = await fetch(`${server.url}/v1/jobs/${id}/cancel`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: 'c1', by: 'anna', why: 'no longer wanted' }),
    });
    expect([answer.status, await answer.json()]).toEqual([202, { answer: 'took_request' }]);
    const all = await (await eventsOf(id)).all();
    const end = { reason: 'ABORTED', detail: 'user_cancel', decidedBy: 'user', by: 'anna', why: 'no longer wanted' };
    expect(all.at(-1)).toMatchObject({ event: 'end', data: { state: 'done', end } });
    // The same request again has the same answer, another one comes too late.
    expect(await runs.cancel('default', id, { by: 'anna', id: 'c1' })).toBe('took_request');
    expect(await runs.cancel('default', id, { by: 'anna' })).toBe('already_ended');
    stop.release();
  });

  test('is listed as the document says', async () => {
    const page = JobPageSchema.parse(await (await fetch(`${server.url}/v1/jobs?limit=2&state=done`)).json());
    expect(page.jobs).toHaveLength(2);
    expect(page.next).not.toBeNull();
  });
});

test('show has turns, calls and what was used', async () => {
  talk.on('one call', (request) =>
    request.messages.some(({ role }) => role === 'tool')
      ? say('Written.')
      : callTools([{ name: 'write_file', arguments: { path: 'a.txt', content: 'a' } }]),
  );
  const { id } = await submitted('one call');
  await (await eventsOf(id)).all();
  const shown = await runs.show('default', id);
  expect(shown).toMatchObject({
    prompt: 'one call',
    text: 'Written.',
    turns: [{ n: 1, end: { reason: 'COMPLETED' } }],
    calls: [{ tool: 'write_file', status: 'ok', step: 0 }],
    effects: [{ tool: 'write_file', state: 'succeeded' }],
    usage: { requests: 2, incomplete: 0, wasted: 0, inputTokens: 200, outputTokens: 20, microUsd: null },
  });
});
