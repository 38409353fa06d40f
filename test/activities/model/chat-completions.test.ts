import { expect, test } from 'vitest';
import { C, chunks, F, hold, paced, say, status, U, X } from '../../../testing/index.ts';
import { type Asking, HI, KNOWN, provider, sample as sampleOn, UNKNOWN } from './at-a-provider.ts';

const sample = (scripted: { baseUrl: string }, options: Asking = {}) => sampleOn(scripted, 'chat', options);

test('text, with the request that asked for it', async () => {
  const scripted = await provider({ script: [say('Hello you', { reasoning: 'hm' })] });
  const { result, heard } = await sample(scripted);
  expect(result).toEqual({
    kind: 'reply',
    finish: 'stop',
    usage: KNOWN,
    text: 'Hello you',
    reasoning: 'hm',
    calls: [],
    extra: { reasoning_content: 'hm' },
  });
  expect(heard).toEqual(['reasoning:hm', 'text:Hello ', 'text:you']);
  const [request] = scripted.requests;
  expect(request?.body).toEqual({
    model: 'm',
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'hello' },
    ],
    tools: [
      {
        type: 'function',
        function: { name: 'x', description: 'd', parameters: { type: 'object', properties: {} } },
      },
    ],
    max_tokens: 64,
    stream: true,
    stream_options: { include_usage: true },
  });
  expect(request?.headers).toMatchObject({ 'idempotency-key': 'key-1', authorization: 'Bearer test-key-1' });
  await request?.settled;
  expect(request?.closedAt).toBeNull();
  scripted.assertDone();
});

test('an answer without a stream is taken too', async () => {
  const body = {
    choices: [{ message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
    usage: U(100, 10).usage,
  };
  const scripted = await provider({ script: [status(200, body)] });
  expect((await sample(scripted)).result).toEqual({ kind: 'reply', finish: 'stop', usage: KNOWN, ...HI });
});

test('a finish reason is enough: the socket may close, or stay silent, without an end marker', async () => {
  const silent = paced(chunks([C({ content: 'Hi' }), F('stop')]), { hold: hold(), holdAt: 2 });
  const scripted = await provider({ script: [chunks([C({ content: 'Hi' }), F('stop'), X]), silent] });
  const expected = { kind: 'reply', finish: 'stop', usage: UNKNOWN, ...HI };
  expect((await sample(scripted)).result).toEqual(expected);
  expect((await sample(scripted, { clocks: { usageWaitMs: 20 } })).result).toEqual(expected);
});

test('a native answer format, strict where it can be said so; left out where it can not', async () => {
  const scripted = await provider({ script: [say('{}'), say('{}'), say('{}')] });
  const schema = { type: 'object', properties: { a: { type: 'string' } } };
  const request = { answer: { name: 'verdict', schema } };
  await sample(scripted, { request });
  await sample(scripted, { request: { ...request, idempotencyKey: 'key-2' }, schemas: 'plain' });
  await sample(scripted, { request: { answer: { name: 'x', schema: { type: 'string' } }, idempotencyKey: 'key-3' } });
  expect(scripted.requests.map(({ body }) => body['response_format'])).toEqual([
    {
      type: 'json_schema',
      json_schema: {
        name: 'verdict',
        strict: true,
        schema: {
          type: 'object',
          properties: { a: { type: ['string', 'null'] } },
          required: ['a'],
          additionalProperties: false,
        },
      },
    },
    { type: 'json_schema', json_schema: { name: 'verdict', strict: false, schema } },
    undefined,
  ]);
  scripted.assertDone();
});
