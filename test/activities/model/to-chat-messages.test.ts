import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NO_RESULT_TEXT, repairPairs } from '../../../activities/model/repair-pairs.ts';
import { type ChatTarget, toChatMessages, toChatTools } from '../../../activities/model/to-chat-messages.ts';
import { type ChatRequestMessage, pairingFault } from '../../../testing/index.ts';
import type { Message, ToolCall } from '../../../workflows/core/transcript.ts';

const TARGET: ChatTarget = { instructions: '', provider: 'p', model: 'm', reasoning: 'send' };

const user = (text: string): Message => ({ kind: 'user', text, input: 'i', source: 'prompt' });
const call = (id: string, args = '{}'): ToolCall => ({ id, name: 'x', arguments: args });
const result = (ordinal: number, text = 'ok'): Message => ({
  kind: 'tool_result',
  ordinal,
  callId: '',
  tool: 'x',
  text,
  isError: false,
  blob: null,
});
function assistant(calls: readonly ToolCall[], fields: Partial<Message & { kind: 'assistant' }> = {}): Message {
  return {
    kind: 'assistant',
    text: '',
    reasoning: '',
    calls,
    provider: 'p',
    model: 'm',
    extra: {},
    cut: false,
    ...fields,
  };
}

test('every kind of message, in order', () => {
  const messages: Message[] = [
    user('do it'),
    assistant([call('a1', '{"id":1}')], { text: 'Looking' }),
    result(0, 'found'),
    { kind: 'directive', text: 'go on', goal: 'g', round: '1' },
    { kind: 'reminder', code: 'todo', text: 'open items' },
    { kind: 'interruption', text: 'was cut', turn: 't' },
    { kind: 'compaction', text: 'so far', keptFrom: 1, objective: '', todos: [] },
  ];
  expect(toChatMessages(messages, { ...TARGET, instructions: 'Be brief.' })).toEqual([
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'do it' },
    {
      role: 'assistant',
      content: 'Looking',
      tool_calls: [{ id: 'a1', type: 'function', function: { name: 'x', arguments: '{"id":1}' } }],
    },
    { role: 'tool', tool_call_id: 'a1', content: 'found' },
    { role: 'user', content: 'go on' },
    { role: 'user', content: 'open items' },
    { role: 'user', content: 'was cut' },
    { role: 'user', content: 'so far' },
  ]);
});

test.each([
  ['', '{}'],
  ['  ', '{}'],
  ['null', '{}'],
  ['{"a":1}', '{"a":1}'],
  ['[]', '{"unparsed":"[]"}'],
  ['{"a":1}{"b":2}', '{"unparsed":"{\\"a\\":1}{\\"b\\":2}"}'],
  ['{"path":"a', '{"unparsed":"{\\"path\\":\\"a"}'],
])('arguments %j go back as %s', (args, expected) => {
  const [sent] = toChatMessages([assistant([call('a1', args)]), result(0)], TARGET);
  expect(sent).toMatchObject({ tool_calls: [{ function: { arguments: expected } }] });
});

describe('ids', () => {
  const idsOf = (...calls: readonly (readonly string[])[]) =>
    toChatMessages(
      calls.flatMap((ids) => [assistant(ids.map((id) => call(id))), ...ids.map((_, n) => result(n))]),
      TARGET,
    ).flatMap((message) => ('tool_calls' in message ? (message.tool_calls ?? []).map(({ id }) => id) : []));

  test.each([
    ['kept where they are unique', [['a1', 'a2']], ['a1', 'a2']],
    ['repeated over turns', [['a1'], ['a1']], ['a1', 'call_2_0']],
    ['repeated in one message', [['a1', 'a1']], ['a1', 'call_0_1']],
    ['blank', [['', '']], ['call_0_0', 'call_0_1']],
    ['longer than providers take', [['a'.repeat(41)]], ['call_0_0']],
    ['a made-up one that the model used as well', [['', 'call_0_0']], ['call_0_0_', 'call_0_0']],
  ])('%s', (_name, calls, expected) => {
    expect(idsOf(...calls)).toEqual(expected);
  });
});

describe('fields that must go back', () => {
  const first = assistant([call('a1')], { extra: { reasoning_content: 'old', tool_calls: { 0: { sig: 's' } } } });
  const messages = [
    user('1'),
    first,
    result(0),
    user('2'),
    assistant([call('a2')], { extra: { reasoning_content: 'new' } }),
    result(0),
  ];
  const reasoning = (target: Partial<ChatTarget>) =>
    toChatMessages(messages, { ...TARGET, ...target })
      .filter(({ role }) => role === 'assistant')
      .map((message) => (message as ChatRequestMessage)['reasoning_content']);

  test.each<[Partial<ChatTarget>, unknown[]]>([
    [{}, ['old', 'new']],
    [{ reasoning: 'drop' }, [undefined, undefined]],
    [{ reasoning: 'send_in_current_turn' }, [undefined, 'new']],
    [{ model: 'other' }, [undefined, undefined]],
    // Trap: a fallback may be a model of the same name at another provider, which can't open what the first one sealed.
    [{ provider: 'other' }, [undefined, undefined]],
  ])('%j', (target, expected) => {
    expect(reasoning(target)).toEqual(expected);
  });

  test('fields of a call go back with the call', () => {
    expect(toChatMessages(messages, TARGET)[1]).toMatchObject({ tool_calls: [{ id: 'a1', sig: 's' }] });
  });
});

test('a name that the model made up, half a character and an empty result are sent in a form that is accepted', () => {
  const odd = assistant([{ id: 'a1', name: 'do it!', arguments: '' }], { text: 'x\uD83C' });
  expect(toChatMessages([odd, result(0, '')], TARGET)).toEqual([
    {
      role: 'assistant',
      content: 'x\uFFFD',
      tool_calls: [{ id: 'a1', type: 'function', function: { name: 'do_it_', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'a1', content: '(empty)' },
  ]);
});

test('a message that says nothing is left out', () => {
  expect(toChatMessages([user('a'), assistant([], { cut: true })], TARGET)).toEqual([{ role: 'user', content: 'a' }]);
});

test('a tool without parameters has an object for a schema', () => {
  expect(
    toChatTools([{ name: 'x', description: 'd', parameters: {}, effect: 'none', runs: 'activity' }], 'plain'),
  ).toEqual([
    { type: 'function', function: { name: 'x', description: 'd', parameters: { type: 'object', properties: {} } } },
  ]);
});

describe('repairing pairs', () => {
  const missing = (ordinal: number, callId: string): Message => ({
    kind: 'tool_result',
    ordinal,
    callId,
    tool: 'x',
    text: NO_RESULT_TEXT,
    isError: true,
    blob: null,
  });
  const two = assistant([call('a1'), call('a2')]);
  const cutTwo = assistant([call('a1'), call('a2')], { cut: true, text: 'so' });
  const rows: readonly [string, Message[], Message[]][] = [
    ['whole rounds are left alone', [user('q'), two, result(0), result(1)], [user('q'), two, result(0), result(1)]],
    ['a missing result is made up', [two, result(0), user('q')], [two, result(0), missing(1, 'a2'), user('q')]],
    ['order is call order', [two, result(1), result(0)], [two, result(0), result(1)]],
    [
      'a result behind a message is moved up',
      [two, result(0), user('q'), result(1)],
      [two, result(0), result(1), user('q')],
    ],
    [
      'a result without a call is dropped',
      [user('q'), result(0), two, result(0), result(1), result(2)],
      [user('q'), two, result(0), result(1)],
    ],
    ['a second result is dropped', [two, result(0), result(0, 'again'), result(1)], [two, result(0), result(1)]],
    [
      'unanswered calls of a cut message are dropped',
      [cutTwo, user('q')],
      [assistant([], { cut: true, text: 'so' }), user('q')],
    ],
    [
      'answered calls of a cut message stay',
      [cutTwo, result(1, 'late')],
      [assistant([call('a2')], { cut: true, text: 'so' }), result(0, 'late')],
    ],
  ];
  test.each(rows)('%s', (_name, before, after) => {
    expect(repairPairs(before)).toEqual(after);
    expect(repairPairs(after)).toEqual(after);
  });

  test('whatever the transcript, a strict provider finds nothing to refuse', () => {
    const id = fc.constantFrom('', 'a1', 'a2', 'call_0_0', 'b'.repeat(50));
    const text = fc.constantFrom('', ' ', 'x');
    const message = fc.oneof(
      fc.constant(user('q')),
      fc.nat(3).map((ordinal) => result(ordinal)),
      fc
        .record({
          ids: fc.array(id, { maxLength: 3 }),
          cut: fc.boolean(),
          text,
          args: fc.constantFrom('', '{', '[]', '{"a":1}'),
        })
        .map((shape) =>
          assistant(
            shape.ids.map((one) => call(one, shape.args)),
            { cut: shape.cut, text: shape.text },
          ),
        ),
    );
    fc.assert(
      fc.property(fc.array(message, { maxLength: 12 }), (messages) => {
        expect(pairingFault(toChatMessages(messages, TARGET) as ChatRequestMessage[])).toBeNull();
      }),
    );
  });
});
