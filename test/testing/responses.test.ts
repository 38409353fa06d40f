import OpenAI from 'openai';
import type { ResponseInputItem, ResponseStreamEvent } from 'openai/resources/responses/responses';
import { afterEach, describe, expect, test } from 'vitest';
import { callTools, type ScriptedProvider, say, startScriptedProvider } from '../../testing/index.ts';

const open: ScriptedProvider[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((provider) => provider.close()));
});

async function provider(options: Parameters<typeof startScriptedProvider>[0]): Promise<ScriptedProvider> {
  const started = await startScriptedProvider(options);
  open.push(started);
  return started;
}

const client = ({ baseUrl }: ScriptedProvider) => new OpenAI({ baseURL: baseUrl, apiKey: 'k', maxRetries: 0 });
const HELLO: ResponseInputItem[] = [{ type: 'message', role: 'user', content: 'hello' }];
const call: ResponseInputItem = { type: 'function_call', call_id: 'a1', name: 'x', arguments: '{}' };
const result: ResponseInputItem = { type: 'function_call_output', call_id: 'a1', output: 'ok' };
const reasoning = { type: 'reasoning', id: 'rs', summary: [], encrypted_content: 's' } satisfies ResponseInputItem;

test('a streamed reply is the whole protocol, in order', async () => {
  const scripted = await provider({
    script: [callTools([{ name: 'x', arguments: {} }], { reasoning: 'hm', text: 'I look' })],
  });
  const stream = await client(scripted).responses.create({ model: 'm', input: HELLO, store: false, stream: true });
  const events: ResponseStreamEvent[] = [];
  for await (const event of stream) events.push(event);
  expect(events.map(({ type }) => type)).toEqual([
    'response.output_item.added',
    'response.reasoning_summary_text.delta',
    'response.output_item.added',
    'response.output_text.delta',
    'response.output_text.delta',
    'response.output_item.added',
    'response.function_call_arguments.delta',
    'response.output_item.done',
    'response.output_item.done',
    'response.output_item.done',
    'response.completed',
  ]);
  expect(events.map((event) => 'sequence_number' in event && event.sequence_number)).toEqual(events.map((_, n) => n));
});

test('a reply without a stream', async () => {
  const scripted = await provider({ script: [say('Hi')] });
  const response = await client(scripted).responses.create({ model: 'm', input: HELLO, store: false });
  expect([response.output_text, response.usage?.output_tokens]).toEqual(['Hi', 10]);
});

test('rules see the same conversation on either wire', async () => {
  const scripted = await provider({
    rules: ({ messages }) =>
      say(messages.map(({ role, tool_calls: calls }) => `${role}${calls ? calls.length : ''}`).join(' ')),
  });
  const input: ResponseInputItem[] = [
    ...HELLO,
    { type: 'message', role: 'assistant', content: 'I look' },
    call,
    result,
  ];
  const body = { model: 'm', instructions: 'Be brief.', input, store: false } as const;
  expect((await client(scripted).responses.create(body)).output_text).toBe('system user assistant1 tool');
});

describe('what the Responses API would refuse is refused', () => {
  const include = { include: ['reasoning.encrypted_content' as const] };
  const tool = { type: 'function', function: { name: 'x' } };
  test.each<[string, object, string]>([
    ['stored', { store: true }, 'store is not false'],
    ['fields of chat completions', { max_tokens: 5 }, 'it has fields of chat completions'],
    ['nested tools', { tools: [tool] }, 'tools[0] is not flat, or not strict by its own word'],
    ['an unanswered call', { input: [call, ...HELLO] }, 'tool calls without a result before messages[1]: a1'],
    ['an output of nobody', { input: [...HELLO, result] }, 'messages[1] answers "a1", which is no open tool call'],
    [
      'reasoning that nobody asked for',
      { input: [reasoning, call, result] },
      'input[0] is reasoning, and include does not ask for it',
    ],
    [
      'reasoning without an item behind it',
      { ...include, input: [reasoning, ...HELLO] },
      'input[0] is reasoning without the item that followed it',
    ],
    [
      'reasoning that is stored nowhere',
      { ...include, input: [{ ...reasoning, encrypted_content: '' }, call, result] },
      'input[0] is reasoning that is not stored here',
    ],
    [
      'a status',
      { ...include, input: [{ ...reasoning, status: 'completed' }, call, result] },
      'input[0] has the unknown field status',
    ],
    [
      'an unknown item',
      { input: [{ type: 'item_reference', id: 'x' }] },
      'input[0] is of the unknown type "item_reference"',
    ],
  ])('%s', async (_name, change, fault) => {
    const scripted = await provider({ rules: () => say('x') });
    const body = { model: 'm', input: HELLO, store: false, ...change };
    await expect(client(scripted).responses.create(body)).rejects.toMatchObject({ status: 400 });
    expect(scripted.faults).toEqual([`request 1: ${fault}`]);
  });
});
