import { describe, expect, test } from 'vitest';
import { accumulate, conclude, EMPTY_DRAFT } from '../../../activities/model/accumulate.ts';
import type { Conclusion } from '../../../activities/model/dialect.ts';
import type { JsonObject } from '../../../activities/model/json.ts';
import { C, type ChunkPayload, F, T, U } from '../../../testing/index.ts';

const DONE = 'done';

function stream(...frames: readonly (ChunkPayload | typeof DONE)[]): Conclusion {
  let draft = EMPTY_DRAFT;
  for (const frame of frames) {
    if (frame === DONE) draft = { ...draft, done: true };
    else draft = accumulate(draft, frame as JsonObject).draft;
  }
  return conclude(draft);
}

function calls(end: Conclusion): unknown {
  return end.kind === 'reply' ? end.calls.map((call) => [call.id, call.name, call.arguments]) : end.kind;
}

const usage = { inputTokens: 7, cachedTokens: 0, outputTokens: 3, reasoningTokens: 0, complete: true };

describe('which fragment belongs to which call', () => {
  const whole = (id: string, n: number) => [id, 'ticket_get', `{"id":${n}}`];
  const rows: readonly [string, readonly ChunkPayload[], unknown][] = [
    [
      'two ids under one index are two calls',
      [T(0, 'a1', 'ticket_get', '{"id":11}'), T(0, 'a2', 'ticket_get', '{"id":12}')],
      [whole('a1', 11), whole('a2', 12)],
    ],
    [
      'a continuation goes to the call being streamed when its index is new',
      [
        T(0, 'a1', 'ticket_get', '{"id":'),
        T(0, '-', '-', '11}'),
        T(0, 'a2', 'note_add', ''),
        T(1, '-', '-', '{"text":"x"}'),
      ],
      [whole('a1', 11), ['a2', 'note_add', '{"text":"x"}']],
    ],
    [
      'no index anywhere',
      [T('-', 'a1', 'ticket_get', '{"id":11}'), T('-', 'a2', 'ticket_get', '{"id":12}')],
      [whole('a1', 11), whole('a2', 12)],
    ],
    [
      'pieces of two calls in turns, by index',
      [
        T(0, 'a1', 'ticket_get', '{"id"'),
        T(1, 'a2', 'ticket_get', '{"id"'),
        T(0, '-', '-', ':11}'),
        T(1, '-', '-', ':12}'),
      ],
      [whole('a1', 11), whole('a2', 12)],
    ],
    [
      'index 0 for every continuation: a finished call takes nothing more',
      [
        T(0, 'a1', 'ticket_get', '{"id":'),
        T(0, '-', '-', '11}'),
        T(1, 'a2', 'ticket_get', '{"id":'),
        T(0, '-', '-', '12}'),
      ],
      [whole('a1', 11), whole('a2', 12)],
    ],
    [
      'an id seen before belongs to its call whatever the index',
      [T(0, 'a1', 'ticket_get', '{"id":'), T(1, 'a1', '-', '11}')],
      [whole('a1', 11)],
    ],
    [
      'two whole calls under one id stay two',
      [T(0, 'a1', 'ticket_get', '{"id":11}'), T(1, 'a1', 'ticket_get', '{"id":12}')],
      [whole('a1', 11), whole('a1', 12)],
    ],
    [
      'no ids at all',
      [T(0, '-', 'ticket_get', '{"id":11}'), T(1, '-', 'ticket_get', '{"id":12}')],
      [whole('', 11), whole('', 12)],
    ],
    [
      'two calls in one delta without id and index',
      [
        C({
          tool_calls: [
            { function: { name: 'list_queues', arguments: '' } },
            { function: { name: 'list_users', arguments: '' } },
          ],
        }),
      ],
      [
        ['', 'list_queues', ''],
        ['', 'list_users', ''],
      ],
    ],
    [
      'a name in pieces',
      [T(0, 'a1', 'ticket', ''), T(0, '-', '_get', ''), T(0, '-', '-', '{"id":11}')],
      [whole('a1', 11)],
    ],
    [
      'name and id repeated with every fragment',
      [T(0, 'a1', 'ticket_get', '{"id":'), T(0, 'a1', 'ticket_get', '11}')],
      [whole('a1', 11)],
    ],
    [
      'arguments as a value, not a text',
      [C({ tool_calls: [{ index: 0, id: 'a1', function: { name: 'ticket_get', arguments: { id: 11 } } }] })],
      [whole('a1', 11)],
    ],
    ['an id that comes late', [T(0, '-', 'ticket_get', ''), T(0, 'a1', '-', '{"id":11}')], [whole('a1', 11)]],
    [
      'what the model itself wrote as one piece is passed on for the tool to refuse',
      [T(0, 'a1', 'ticket_get', '{"a":1}{"b":2}')],
      [['a1', 'ticket_get', '{"a":1}{"b":2}']],
    ],
    // Never run glued arguments: the sample is thrown away.
    [
      'a second object for a finished call is ambiguous',
      [T(0, 'a1', 'ticket_get', '{"id":11}'), T(0, '-', '-', '{"id":12}')],
      'malformed',
    ],
    [
      'a new name in the middle of arguments is ambiguous',
      [T(0, 'a1', 'ticket_get', '{"id":'), T(0, '-', 'note_add', '1}')],
      'malformed',
    ],
    ['arguments of nobody', [T(0, '-', '-', '{"id":11}')], 'malformed'],
    ['a call without a name', [T(0, 'a1', '-', '{"id":11}')], 'malformed'],
    ['an empty fragment of nobody is nothing', [T(0, '-', '-', '')], []],
  ];
  test.each(rows)('%s', (_name, frames, expected) => {
    expect(calls(stream(...frames, F('tool_calls'), DONE))).toEqual(expected);
  });

  test.each(['', '   ', 'null', '[]'])('arguments %j reach the caller as they came', (args) => {
    expect(calls(stream(T(0, 'a1', 'list_queues', args), F('tool_calls'), DONE))).toEqual([
      ['a1', 'list_queues', args],
    ]);
  });

  test('absent arguments are blank', () => {
    expect(calls(stream(T(0, 'a1', 'list_queues', '-'), F('tool_calls'), DONE))).toEqual([['a1', 'list_queues', '']]);
  });
});

describe('how the stream ended', () => {
  const call = T(0, 'a1', 'x', '{}');
  const rows: readonly [string, readonly (ChunkPayload | typeof DONE)[], string, number][] = [
    ['stop', [C({ content: 'Hi' }), F('stop'), DONE], 'stop', 0],
    ['a finish reason is enough without an end marker', [C({ content: 'Hi' }), F('stop')], 'stop', 0],
    ['an end marker is enough without a finish reason', [C({ content: 'Hi' }), DONE], 'stop', 0],
    ['calls without a finish reason', [call, DONE], 'tool_calls', 1],
    ['"stop" with calls keeps label and calls', [call, F('stop'), DONE], 'stop', 1],
    ['"other" with calls', [call, F('other'), DONE], 'tool_calls', 1],
    ['"tool_calls" without calls keeps its label', [F('tool_calls'), DONE], 'tool_calls', 0],
    ['"length" with a call', [call, F('length'), DONE], 'length', 1],
    ['a content filter', [F('content_filter'), DONE], 'content_filter', 0],
    ['a refusal part', [C({ refusal: 'No.' }), F('stop'), DONE], 'content_filter', 0],
  ];
  test.each(rows)('%s', (_name, frames, finish, count) => {
    const end = stream(...frames);
    expect(end.kind === 'reply' && [end.finish, end.calls.length]).toEqual([finish, count]);
  });

  test.each([
    ['half a call', [T(0, 'a1', 'file_write', '{"path":"a.txt","text":"hel')]],
    ['a whole call', [call]],
    ['text', [C({ content: 'Done.' })]],
    ['nothing', []],
  ])('neither finish reason nor end marker after %s: cut, usage unknown', (_name, frames) => {
    expect(stream(...frames)).toEqual({
      kind: 'cut',
      usage: { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0, complete: false },
    });
  });

  test('a finish reason that says "error" is a failure', () => {
    expect(stream(C({ content: 'Hi' }), F('error'), U(7, 3), DONE)).toEqual({ kind: 'failed', finish: 'error', usage });
  });
});

describe('usage', () => {
  const said = C({ content: 'Hi' });
  const ofReply = (...frames: readonly (ChunkPayload | typeof DONE)[]) => {
    const end = stream(...frames);
    return end.kind === 'reply' ? end.usage : end.kind;
  };

  test('comes late, in a chunk without choices', () => {
    expect(ofReply(said, F('stop'), U(7, 3), DONE)).toEqual(usage);
  });

  test('cumulative reports are not added up: the last one that is not empty counts', () => {
    const empty = { choices: [], usage: { prompt_tokens: 0, completion_tokens: 0 } };
    expect(ofReply(U(7, 1), said, U(7, 3), F('stop'), empty, { choices: [], usage: null }, DONE)).toEqual(usage);
  });

  test.each([
    ['missing', []],
    ['zero', [U(0, 0)]],
    ['without the prompt', [{ choices: [], usage: { completion_tokens: 3 } }]],
    ['zero output for a text', [U(7, 0)]],
    ['of the wrong type', [{ choices: [], usage: { prompt_tokens: '7', completion_tokens: -3 } }]],
  ])('%s usage is incomplete, never a made-up cost', (_name, frames) => {
    expect(ofReply(said, F('stop'), ...frames, DONE)).toMatchObject({ complete: false });
  });

  test('details, from any of the places they stand in', () => {
    const details = {
      prompt_tokens: 7,
      completion_tokens: 3,
      prompt_tokens_details: { cached_tokens: 5 },
      completion_tokens_details: { reasoning_tokens: 2 },
    };
    const expected = { ...usage, cachedTokens: 5, reasoningTokens: 2 };
    expect(ofReply(said, { choices: [{ delta: {}, finish_reason: 'stop', usage: details }] } as ChunkPayload)).toEqual(
      expected,
    );
    expect(ofReply(said, F('stop'), { x_groq: { usage: details } } as ChunkPayload)).toEqual(expected);
  });
});

describe('fields the provider may want back', () => {
  test('reasoning is joined under the name it came with; lists grow; signatures stay with their call', () => {
    const end = stream(
      C({ role: 'assistant', reasoning_content: 'need ' }),
      C({ reasoning_content: 'id', reasoning_details: [{ n: 1 }] }),
      C({ reasoning_details: [{ n: 2 }], signature: 's1' }),
      C({
        tool_calls: [{ index: 0, id: 'a1', extra_content: { sig: 'g' }, function: { name: 'x', arguments: '{}' } }],
      }),
      F('tool_calls'),
      U(7, 3),
    );
    expect(end).toEqual({
      kind: 'reply',
      finish: 'tool_calls',
      usage,
      text: '',
      reasoning: 'need id',
      calls: [{ id: 'a1', name: 'x', arguments: '{}' }],
      extra: {
        reasoning_content: 'need id',
        reasoning_details: [{ n: 1 }, { n: 2 }],
        signature: 's1',
        tool_calls: { 0: { extra_content: { sig: 'g' } } },
      },
    });
  });

  test('content in parts', () => {
    const end = stream(C({ content: [{ type: 'text', text: 'Hi' }] }), F('stop'));
    expect(end.kind === 'reply' && end.text).toBe('Hi');
  });
});

test('an error in a frame or in its choice ends the stream', () => {
  expect(accumulate(EMPTY_DRAFT, { error: { message: 'x' } })).toMatchObject({
    kind: 'failed',
    error: { message: 'x' },
  });
  expect(accumulate(EMPTY_DRAFT, { choices: [{ error: { code: 502 } }] })).toMatchObject({
    kind: 'failed',
    error: { code: 502 },
  });
});

test("a gateway's ping is no progress", () => {
  expect(accumulate(EMPTY_DRAFT, { type: 'ping' })).toEqual({
    kind: 'grown',
    draft: EMPTY_DRAFT,
    text: '',
    reasoning: '',
  });
});
