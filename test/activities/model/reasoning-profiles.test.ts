import { expect, test } from 'vitest';
import type { ReasoningReturn } from '../../../activities/model/wire-port.ts';
import type { ModelResult } from '../../../activities/model/port.ts';
import type { Message } from '../../../workflows/core/transcript.ts';
import { C, type ChatRequest, chunks, D, F, type Reply, say, status, T, U } from '../../../testing/index.ts';
import { type Asking, provider, sample } from './at-a-provider.ts';

const thinking = chunks([
  C({ reasoning_content: 'need id' }),
  T(0, 'a1', 'x', '{"id":11}'),
  F('tool_calls'),
  U(7, 3),
  D,
]);

/** A provider that answers 400 unless the calls of a conversation have their reasoning, or unless they lack it. */
const profile =
  (wants: boolean) =>
  (request: ChatRequest): Reply => {
    const asked = request.messages.filter(({ role }) => role === 'assistant');
    if (asked.length === 0) return thinking;
    const isRight = asked.every((message) => 'reasoning_content' in message === wants);
    return isRight
      ? say('Done.')
      : status(400, {
          error: { message: wants ? 'reasoning_content is missing' : 'reasoning_content is not permitted' },
        });
  };

function transcript(reply: ModelResult): Message[] {
  if (reply.kind !== 'reply') throw new Error(reply.kind);
  const { text, reasoning, calls, extra } = reply;
  return [
    { kind: 'user', text: 'go', input: 'i', source: 'prompt' },
    { kind: 'assistant', text, reasoning, calls, extra, provider: 'p', model: 'm', cut: false },
    { kind: 'tool_result', ordinal: 0, callId: 'a1', tool: 'x', text: 'ok', isError: false, blob: null },
  ];
}

async function twoSteps(wants: boolean, reasoning: ReasoningReturn): Promise<ModelResult['kind']> {
  const scripted = await provider({ rules: profile(wants), expectKey: false });
  const first = await sample(scripted, 'chat', { reasoning });
  const second: Asking = { reasoning, request: { messages: transcript(first.result) } };
  return (await sample(scripted, 'chat', second)).result.kind;
}

// Case: providers differ, and the wrong choice is a 400 on the second step.
test.each<[boolean, ReasoningReturn, ModelResult['kind']]>([
  [true, 'send', 'reply'],
  [true, 'send_in_current_turn', 'reply'],
  [true, 'drop', 'invalid_request'],
  [false, 'drop', 'reply'],
  [false, 'send', 'invalid_request'],
])('a provider that wants reasoning back: %s, told to %s: %s', async (wants, reasoning, expected) => {
  expect(await twoSteps(wants, reasoning)).toBe(expected);
});

test('from the one to the other in the middle: another model never sees it, whatever the switch says', async () => {
  const [a, b] = await Promise.all([provider({ rules: profile(true) }), provider({ rules: profile(false) })]);
  const first = await sample(a, 'chat');
  const fallen = await sample(b, 'chat', { request: { model: 'other', messages: transcript(first.result) } });
  expect(fallen.result.kind).toBe('reply');
});
