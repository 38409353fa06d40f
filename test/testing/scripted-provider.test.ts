import { fileURLToPath } from 'node:url';
import OpenAI from 'openai';
import type { ChatCompletionMessageParam } from 'openai/resources/chat/completions';
import { afterEach, describe, expect, test } from 'vitest';
import {
  C,
  callTools,
  chunks,
  type ScriptedProvider,
  type ScriptedProviderOptions,
  say,
  startProviderProcess,
  startScriptedProvider,
  T,
} from '../../testing/index.ts';

const open: ScriptedProvider[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((provider) => provider.close()));
});

async function provider(options: ScriptedProviderOptions): Promise<ScriptedProvider> {
  const started = await startScriptedProvider(options);
  open.push(started);
  return started;
}

const HELLO: ChatCompletionMessageParam[] = [{ role: 'user', content: 'hello' }];

function ask({ baseUrl }: { baseUrl: string }, messages = HELLO, headers: Record<string, string> = {}) {
  const client = new OpenAI({ baseURL: baseUrl, apiKey: 'k', maxRetries: 0 });
  return client.chat.completions.create({ model: 'm', messages }, { headers });
}

const call = (id: string, args = '{}') => ({ id, type: 'function' as const, function: { name: 'x', arguments: args } });
const calls = (...ids: string[]): ChatCompletionMessageParam => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => call(id)),
});
const result = (id: string): ChatCompletionMessageParam => ({ role: 'tool', tool_call_id: id, content: 'ok' });

describe('strict', () => {
  test('a request past the script fails, at once and at the end', async () => {
    const scripted = await provider({ script: [say('one')] });
    expect((await ask(scripted)).choices[0]?.message.content).toBe('one');
    await expect(ask(scripted)).rejects.toMatchObject({ status: 500 });
    expect(scripted.requests).toHaveLength(2);
    expect(() => scripted.assertDone()).toThrow(
      'The scripted provider was not used as scripted: request 2: it came after the last scripted reply.',
    );
  });

  test('a reply left over fails', async () => {
    const scripted = await provider({ script: [say('one')] });
    scripted.push(say('two'));
    await ask(scripted);
    expect(() => scripted.assertDone()).toThrow(
      'The scripted provider was not used as scripted: 1 scripted reply was never asked for.',
    );
    await ask(scripted);
    scripted.assertDone();
  });

  test('an unknown route fails', async () => {
    const scripted = await provider({});
    expect((await fetch(`${scripted.baseUrl}/embeddings`, { method: 'POST' })).status).toBe(404);
    expect(() => scripted.assertDone()).toThrow('POST /v1/embeddings is not scripted');
  });

  test.each<[string, ChatCompletionMessageParam[], string]>([
    [
      'an unanswered call',
      [calls('a1', 'a2'), result('a1'), ...HELLO],
      'tool calls without a result before messages[2]: a2',
    ],
    ['an unanswered call at the end', [calls('a1')], 'tool calls without a result before messages[1]: a1'],
    ['a result of nobody', [...HELLO, result('a1')], 'messages[1] answers "a1", which is no open tool call'],
    [
      'a second result',
      [calls('a1'), result('a1'), result('a1')],
      'messages[2] answers "a1", which is no open tool call',
    ],
    [
      'an id twice',
      [calls('a1'), result('a1'), calls('a1'), result('a1')],
      'messages[2] repeats the tool call id "a1"',
    ],
    ['no id', [calls('')], 'messages[0] has a tool call without an id'],
    [
      'arguments that are blank',
      [{ role: 'assistant', content: null, tool_calls: [call('a1', '')] }],
      'messages[0] has arguments of "a1" that are no JSON object',
    ],
  ])('%s is refused with 400', async (_name, messages, fault) => {
    const scripted = await provider({ rules: () => say('x') });
    await expect(ask(scripted, messages)).rejects.toMatchObject({ status: 400 });
    expect(scripted.faults).toEqual([`request 1: ${fault}`]);
  });

  test('keys: one for each request, and the same one only for the same bytes', async () => {
    const scripted = await provider({ rules: () => say('x'), expectKey: true });
    await expect(ask(scripted)).rejects.toMatchObject({ status: 400 });
    await ask(scripted, HELLO, { 'Idempotency-Key': 'k1' });
    await ask(scripted, HELLO, { 'Idempotency-Key': 'k1' });
    const other: ChatCompletionMessageParam[] = [{ role: 'user', content: 'other' }];
    await expect(ask(scripted, other, { 'Idempotency-Key': 'k1' })).rejects.toMatchObject({ status: 400 });
    expect(scripted.faults).toEqual([
      'request 1: it has no Idempotency-Key',
      'request 4: it has the Idempotency-Key of a request with another body',
    ]);
  });

  test('chunks cannot answer a request without a stream', async () => {
    const scripted = await provider({ script: [chunks([C({ content: 'x' })])] });
    await expect(ask(scripted)).rejects.toMatchObject({ status: 500 });
    expect(() => scripted.assertDone()).toThrow('chunks() can only answer a request with stream: true');
  });
});

test('a reply may follow from the request, and its call ids from the conversation', async () => {
  const scripted = await provider({
    script: [({ messages }) => say(`heard ${messages.length}`), callTools([{ name: 'x', arguments: { a: 1 } }])],
  });
  expect((await ask(scripted)).choices[0]?.message.content).toBe('heard 1');
  expect((await ask(scripted)).choices[0]).toEqual({
    index: 0,
    message: { role: 'assistant', content: null, tool_calls: [{ ...call('call_1_0', '{"a":1}') }] },
    finish_reason: 'tool_calls',
  });
});

test('a list of models', async () => {
  const scripted = await provider({});
  const client = new OpenAI({ baseURL: scripted.baseUrl, apiKey: 'k' });
  expect((await client.models.list()).data.map(({ id }) => id)).toEqual(['scripted']);
});

test('a key that is absent in the shorthand is absent on the wire', () => {
  expect(T('-', '-', '-', 'x')).toEqual(C({ tool_calls: [{ type: 'function', function: { arguments: 'x' } }] }));
});

test('as a process of its own it answers by rules, tells what it saw, and stops', async () => {
  const running = await startProviderProcess(fileURLToPath(new URL('./rules-for-process.ts', import.meta.url)));
  const headers = { 'Idempotency-Key': 'k1' };
  const first = await ask(running, HELLO, headers);
  const again = await ask(running, HELLO, headers);
  expect(again).toEqual(first);
  const next = [...HELLO, first.choices[0]?.message as ChatCompletionMessageParam, result('call_1_0')];
  expect((await ask(running, next, { 'Idempotency-Key': 'k2' })).choices[0]?.message.content).toBe('done: hello');
  const seen = await running.seen();
  expect(seen.faults).toEqual([]);
  expect(seen.requests.map(({ headers: sent }) => [sent['idempotency-key'], sent.authorization])).toEqual([
    ['k1', undefined],
    ['k1', undefined],
    ['k2', undefined],
  ]);
  await running.stop();
  await expect(fetch(running.baseUrl)).rejects.toThrow('fetch failed');
});
