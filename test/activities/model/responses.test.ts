import { describe, expect, test } from 'vitest';
import type { Message } from '../../../workflows/core/transcript.ts';
import type { ModelReply } from '../../../activities/model/port.ts';
import { C, callTools, chunks, D, F, hold, paced, R, say, status, T, U, X } from '../../../testing/index.ts';
import {
  type Asking,
  HI,
  KNOWN,
  NOTHING,
  portTo,
  provider,
  REQUEST,
  sample as sampleOn,
  UNKNOWN,
} from './at-a-provider.ts';

const sample = (scripted: { baseUrl: string }, options: Asking = {}) => sampleOn(scripted, 'responses', options);

const SEALED = {
  type: 'reasoning',
  id: 'rs_0',
  summary: [{ type: 'summary_text', text: 'hm' }],
  encrypted_content: 'sealed:hm',
};

test('text, with the request that asked for it: nothing is stored there, and reasoning comes sealed', async () => {
  const scripted = await provider({ script: [say('Hello you', { reasoning: 'hm' })] });
  const { result, heard } = await sample(scripted);
  expect(result).toEqual({
    kind: 'reply',
    finish: 'stop',
    usage: KNOWN,
    text: 'Hello you',
    reasoning: 'hm',
    calls: [],
    extra: { output_items: [SEALED, { type: 'message' }] },
  });
  expect(heard).toEqual(['reasoning:hm', 'text:Hello ', 'text:you']);
  const [request] = scripted.requests;
  expect(request?.sent).toEqual({
    model: 'm',
    instructions: 'Be brief.',
    input: [{ type: 'message', role: 'user', content: 'hello' }],
    tools: [
      { type: 'function', name: 'x', description: 'd', parameters: { type: 'object', properties: {} }, strict: false },
    ],
    max_output_tokens: 64,
    store: false,
    include: ['reasoning.encrypted_content'],
    stream: true,
  });
  expect(request?.headers).toMatchObject({ 'idempotency-key': 'key-1', authorization: 'Bearer test-key-1' });
  await request?.settled;
  expect(request?.closedAt).toBeNull();
  scripted.assertDone();
});

test('an answer without a stream is taken too', async () => {
  const body = {
    object: 'response',
    status: 'completed',
    output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hi' }] }],
    usage: { input_tokens: 100, output_tokens: 10 },
  };
  const scripted = await provider({ script: [status(200, body)] });
  expect((await sample(scripted)).result).toEqual({ kind: 'reply', finish: 'stop', usage: KNOWN, ...HI });
});

// Trap: a gateway that writes [DONE] when its upstream broke would turn half an answer into a whole one.
test('only the last event ends a response: neither whole items nor an end marker of another protocol', async () => {
  const item = { type: 'function_call', id: 'fc', call_id: 'a1', name: 'x', arguments: '{}' };
  const whole = R('response.output_item.done', { output_index: 0, item });
  const mark = ': from a gateway\ndata: [DONE]\n\n';
  const scripted = await provider({ script: [chunks([whole, X]), chunks([whole, mark]), chunks([whole])] });
  const ended = { kind: 'transport', cause: 'cut', usage: UNKNOWN };
  for (let n = 0; n < 3; n += 1) expect((await sample(scripted)).result).toMatchObject(ended);
});

test('after the last event the socket may stay silent', async () => {
  const silent = paced(chunks([C({ content: 'Hi' }), F('stop'), U(100, 10), D]), { hold: hold(), holdAt: 4 });
  const scripted = await provider({ script: [silent] });
  expect((await sample(scripted)).result).toEqual({ kind: 'reply', finish: 'stop', usage: KNOWN, ...HI });
});

test('a native answer format', async () => {
  const scripted = await provider({ script: [say('{}')] });
  const schema = {
    type: 'object',
    properties: { a: { type: 'string' } },
    required: ['a'],
    additionalProperties: false,
  };
  await sample(scripted, { request: { answer: { name: 'verdict', schema } } });
  expect(scripted.requests[0]?.body['text']).toEqual({
    format: { type: 'json_schema', name: 'verdict', strict: true, schema },
  });
  scripted.assertDone();
});

const user = (text: string): Message => ({ kind: 'user', text, input: text, source: 'prompt' });
const result = (ordinal: number): Message => ({
  kind: 'tool_result',
  ordinal,
  callId: '',
  tool: 'x',
  text: 'ok',
  isError: false,
  blob: null,
});

function assistant(reply: ModelReply, fields: Partial<Message & { kind: 'assistant' }> = {}): Message {
  const { text, reasoning, calls, extra } = reply;
  return { kind: 'assistant', text, reasoning, calls, extra, provider: 'p', model: 'm', cut: false, ...fields };
}

/** The items of the second request, after this reply and its results; the provider refuses what is not allowed there. */
async function sentBack(
  first: ModelReply,
  options: Asking = {},
  fields: Partial<Message & { kind: 'assistant' }> = {},
) {
  const scripted = await provider({ script: [say('Done.')] });
  const messages = [user('go'), assistant(first, fields), ...first.calls.map((_, n) => result(n))];
  await sample(scripted, { ...options, request: { messages, ...options.request } });
  scripted.assertDone();
  return (scripted.requests[0]!.sent as { input: { type: string }[] }).input;
}

async function replied(...frames: Parameters<typeof chunks>[0]): Promise<ModelReply> {
  const scripted = await provider({ script: [chunks(frames)] });
  const { result: reply } = await sample(scripted);
  if (reply.kind !== 'reply') throw new Error(reply.kind);
  return reply;
}

const reasoningItem = (n: number) => ({ type: 'reasoning', id: `rs_${n}`, summary: [], encrypted_content: `s${n}` });
const callItem = (n: number) => ({
  type: 'function_call',
  id: `fc_${n}`,
  call_id: `a${n}`,
  name: 'x',
  arguments: '{}',
  status: 'completed',
});
const textItem = (text: string, phase?: string) => ({
  type: 'message',
  id: 'msg',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text }],
  ...(phase ? { phase } : {}),
});
const completed = (...output: object[]) =>
  R('response.completed', { response: { status: 'completed', output, usage: { input_tokens: 7, output_tokens: 3 } } });
const call = (n: number) => ({ type: 'function_call', call_id: `a${n}`, name: 'x', arguments: '{}' });
const output = (n: number) => ({ type: 'function_call_output', call_id: `a${n}`, output: 'ok' });
const go = { type: 'message', role: 'user', content: 'go' };
const said = (text: string, phase?: string) => ({
  type: 'message',
  role: 'assistant',
  content: text,
  ...(phase ? { phase } : {}),
});

describe('what goes back', () => {
  test('reasoning, sealed, where it stood, without what a request may not have', async () => {
    const open = { ...reasoningItem(0), status: 'completed', content: null };
    const reply = await replied(completed(open, callItem(1), reasoningItem(2), callItem(3)));
    expect(await sentBack(reply)).toEqual([
      go,
      reasoningItem(0),
      call(1),
      reasoningItem(2),
      call(3),
      output(1),
      output(3),
    ]);
  });

  test('several texts with their phases, and the calls between them', async () => {
    const reply = await replied(
      completed(reasoningItem(0), textItem('I look.', 'commentary'), callItem(1), textItem(' Found.')),
    );
    expect(reply.text).toBe('I look. Found.');
    expect(await sentBack(reply)).toEqual([
      go,
      reasoningItem(0),
      said('I look.', 'commentary'),
      call(1),
      said(' Found.'),
      output(1),
    ]);
  });

  test('reasoning in the open, as some servers give it; but none that only the provider could look up', async () => {
    const bare = { type: 'reasoning', id: 'rs', summary: [] };
    const open = { ...bare, content: [{ type: 'reasoning_text', text: 'hm' }] };
    expect(await sentBack(await replied(completed(open, callItem(1))))).toEqual([go, open, call(1), output(1)]);
    expect(await sentBack(await replied(completed(bare, callItem(1))))).toEqual([go, call(1), output(1)]);
  });

  test('no reasoning to another model or provider, none if the provider says so, none of an earlier turn if it says so', async () => {
    const reply = await replied(completed(reasoningItem(0), callItem(1)));
    const plain = [go, call(1), output(1)];
    expect(await sentBack(reply, { request: { model: 'other' } })).toEqual(plain);
    expect(await sentBack(reply, { request: { provider: 'other' } })).toEqual(plain);
    expect(await sentBack(reply, { reasoning: 'drop' })).toEqual(plain);
    expect(await sentBack(reply, { reasoning: 'send_in_current_turn' })).toEqual([
      go,
      reasoningItem(0),
      call(1),
      output(1),
    ]);
    const later = [user('go'), assistant(reply), result(0), user('more')];
    const earlier = await sentBack(reply, { reasoning: 'send_in_current_turn', request: { messages: later } });
    expect(earlier).toEqual([...plain, { ...go, content: 'more' }]);
  });

  test('no reasoning where the message is not what it was any more', async () => {
    const reply = await replied(completed(reasoningItem(0), callItem(1)));
    expect(await sentBack({ ...reply, calls: [] })).toEqual([go]);
    expect(await sentBack({ ...reply, text: 'Edited.' })).toEqual([go, said('Edited.'), call(1), output(1)]);
  });

  test('no reasoning at the end of a message, which had nothing behind it', async () => {
    const reply = await replied(completed(textItem('Hi'), reasoningItem(0)));
    expect(await sentBack(reply)).toEqual([go, said('Hi')]);
  });

  test('of another wire: text and calls, not its fields; and the other way round', async () => {
    const reply = await replied(completed(reasoningItem(0), callItem(1)));
    expect(await sentBack({ ...reply, extra: { reasoning_content: 'hm' } })).toEqual([go, call(1), output(1)]);
    const scripted = await provider({ script: [say('Done.')] });
    await sampleOn(scripted, 'chat', { request: { messages: [user('go'), assistant(reply), result(0)] } });
    expect(Object.keys(scripted.requests[0]?.body.messages[2] ?? {})).toEqual(['role', 'content', 'tool_calls']);
  });

  test('a provider that drops reasoning is not asked for it: models that do not reason refuse the question', async () => {
    const scripted = await provider({ script: [say('Hi')] });
    await sample(scripted, { reasoning: 'drop' });
    expect(scripted.requests[0]?.body).not.toHaveProperty('include');
  });
});

describe('events that gateways get wrong', () => {
  const added = (n: number, fields: object = {}) =>
    R('response.output_item.added', {
      output_index: n,
      item: { type: 'function_call', id: `fc_${n}`, call_id: `a${n}`, name: 'x', arguments: '', ...fields },
    });
  const args = (fields: object) => R('response.function_call_arguments.delta', { delta: '{}', ...fields });
  const bare = completed();
  const whole = (n: number) => R('response.output_item.done', { output_index: n, item: callItem(n) });
  const calls = [
    { id: 'a1', name: 'x', arguments: '{}' },
    { id: 'a2', name: 'x', arguments: '{}' },
  ];

  test.each([
    [
      'another item id in each event: the index counts',
      [added(1), added(2), args({ item_id: 'u', output_index: 1 }), args({ item_id: 'v', output_index: 2 }), bare],
    ],
    [
      'items without ids',
      [
        added(1, { id: undefined }),
        args({ output_index: 1 }),
        added(2, { id: undefined }),
        args({ output_index: 2 }),
        bare,
      ],
    ],
    ['items that are never added, only done', [whole(1), whole(2), bare]],
    ['items in the last event alone', [completed(callItem(1), callItem(2))]],
    ['a last event that knows fewer items than were done', [whole(1), whole(2), completed(callItem(1))]],
    [
      'whole items behind deltas: nothing twice',
      [
        added(1),
        args({ item_id: 'fc_1' }),
        whole(1),
        added(2),
        args({ item_id: 'fc_2' }),
        whole(2),
        completed(callItem(1), callItem(2)),
      ],
    ],
    [
      'types only in the event line',
      [
        'event: response.completed\ndata: {"response":{"output":[' +
          [1, 2].map((n) => JSON.stringify(callItem(n))).join() +
          ']}}\n\n',
      ],
    ],
  ])('%s', async (_name, frames) => {
    expect((await replied(...frames)).calls).toEqual(calls);
  });

  test('arguments that are half there when everything ends do not run as if they were whole', async () => {
    const half = { ...callItem(1), arguments: '{"path":"a', status: 'incomplete' };
    const scripted = await provider({ script: [chunks([completed(half)])] });
    expect((await sample(scripted)).result).toMatchObject({
      kind: 'reply',
      finish: 'length',
      calls: [{ arguments: '{"path":"a' }],
    });
  });

  test.each([
    [
      'failed',
      R('response.failed', {
        response: {
          status: 'failed',
          error: { code: 'server_error', message: 'x' },
          usage: { input_tokens: 7, output_tokens: 3 },
        },
      }),
      { kind: 'server_error', usage: { inputTokens: 7, outputTokens: 3, complete: false } },
    ],
    ['failed without a word', R('response.failed'), { kind: 'server_error', usage: UNKNOWN }],
    [
      'failed, said in a completed event',
      R('response.completed', { response: { status: 'failed', error: { code: 'rate_limit_exceeded', message: 'x' } } }),
      { kind: 'rate_limited' },
    ],
    ['cancelled', R('response.cancelled', { response: { status: 'cancelled' } }), { kind: 'server_error' }],
    [
      'an error event with an error in it',
      R('error', { error: { code: 'context_length_exceeded', message: 'x' } }),
      { kind: 'overflow' },
    ],
  ])('%s: a failure', async (_name, frame, expected) => {
    const scripted = await provider({ script: [chunks([added(1), frame])] });
    expect((await sample(scripted)).result).toMatchObject(expected);
  });
});

test('a cut keeps the text, and neither calls nor reasoning that had nothing behind it', async () => {
  const wait = hold();
  const frames = [C({ reasoning_content: 'hm' }), C({ content: 'Hi' }), T(0, 'a1', 'x', '{}'), F('stop'), D];
  const scripted = await provider({ script: [paced(chunks(frames), { hold: wait, holdAt: 3 })] });
  const cancel = new AbortController();
  const port = portTo(scripted, 'responses');
  const cutting = port.sample(REQUEST, {
    signal: cancel.signal,
    onDelta: (channel) => channel === 'text' && cancel.abort(),
  });
  expect(await cutting).toMatchObject({ kind: 'cut', text: 'Hi', reasoning: 'hm', extra: {}, usage: UNKNOWN });
});

test('refused before the request: nothing is sent', async () => {
  const scripted = await provider({});
  expect((await sample(scripted, { apiKey: () => '' })).result).toMatchObject({ kind: 'auth', usage: NOTHING });
  scripted.assertDone();
});

test('the reply of a call, as the whole protocol says it', async () => {
  const scripted = await provider({
    script: [callTools([{ name: 'x', arguments: { a: 1 }, id: 'a1' }], { reasoning: 'hm' })],
  });
  expect((await sample(scripted)).result).toMatchObject({
    calls: [{ id: 'a1', name: 'x', arguments: '{"a":1}' }],
    extra: { output_items: [SEALED, { type: 'function_call' }] },
  });
});
