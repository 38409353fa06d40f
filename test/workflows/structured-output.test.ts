import { mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Hook } from '../../activities/gate/hook-types.ts';
import { C, callTools, type ChatRequest, chunks, countToolResults, D, F, say, U } from '../../testing/index.ts';
import { conversations, newestUserText } from '../support/conversations.ts';
import { only } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';

const SCHEMA = {
  type: 'object',
  properties: { verdict: { enum: ['ok', 'bad'] }, items: { type: 'array', items: { type: 'string' } } },
  required: ['verdict'],
  additionalProperties: false,
};

/** Blocks the conversation that is named so, once. */
const gate: Hook = {
  event: 'StopGate',
  run: ({ workspace, stopHookActive }) =>
    basename(workspace) === 'gated' && !stopHookActive ? { decision: 'block', reason: 'Look again.' } : null,
};

const talk = conversations();
let at: TestHouse;
beforeAll(async () => {
  at = await testHouse({
    rules: talk.rules,
    expectKey: true,
    agent: { outputSchema: SCHEMA },
    definition: { hooks: [gate] },
    providers: (baseUrl) => ({ formats: { baseUrl, apiKeyEnv: null, structuredOutput: 'native' } }),
    others: [
      { name: 'native', provider: 'formats' },
      { name: 'small', limits: { outputTokens: 100, raisedOutputTokens: 100 } },
      { name: 'files-first', contract: { tools: ['list_files'], baseMs: 10 } },
    ],
  });
});
afterAll(async () => {
  await at.close();
});

const hand = (...answers: readonly unknown[]) =>
  callTools(answers.map((each) => ({ name: 'StructuredOutput', arguments: each })));

async function play(name: string, agent: string, replies: (request: ChatRequest, n: number) => ReturnType<typeof say>) {
  let n = 0;
  const seen = new Map<string, ReturnType<typeof say>>();
  talk.on(name, (request) => {
    const key = JSON.stringify(request);
    const reply = seen.get(key) ?? replies(request, n++);
    seen.set(key, reply);
    return reply;
  });
  mkdirSync(join(at.workspaces, name.replaceAll(' ', '-')), { recursive: true });
  const { session } = await at.submit(name, { agent, workspace: name.replaceAll(' ', '-') });
  const end = await at.ended(session);
  const events = await at.events(session);
  return {
    end,
    session,
    requests: talk.requestsOf(at.provider, name).map(({ body }) => body),
    transitions: only(events, 'sample.started').map(({ transition }) => transition),
    batches: only(events, 'batch.ended').length,
  };
}

const formatOf = (request: ChatRequest) => (request['response_format'] as { type: string } | undefined)?.type ?? null;
const toolsOf = (request: ChatRequest) => (request.tools ?? []).map((tool) => tool.function.name);

describe.concurrent('handed in by a tool', () => {
  it('costs no further call: the answer is taken out, and stands in the end', async () => {
    const { end, requests, session, batches } = await play('one call', 'tester', () => hand({ verdict: 'ok' }));
    expect(end).toMatchObject({ endReason: 'COMPLETED', endDetail: 'final_answer', endDecidedBy: 'model', endStep: 0 });
    expect(end.endStructuredOutput).toEqual({ value: { verdict: 'ok' } });
    expect(requests).toHaveLength(1);
    expect(toolsOf(requests[0]!)).toContain('StructuredOutput');
    expect(batches).toBe(0);
    expect((await at.transcript(session)).map(({ kind }) => kind)).toEqual(['user', 'assistant', 'tool_result']);
  });

  it('tools come first: the call beside others is sent back alone, and spends no retry', async () => {
    const { end, requests, transitions } = await play('too soon', 'tester', (_, n) =>
      n === 0
        ? callTools([
            { name: 'list_files', arguments: {} },
            { name: 'StructuredOutput', arguments: { verdict: 'bad' } },
          ])
        : hand({ verdict: 'ok' }),
    );
    expect(end).toMatchObject({ endStep: 1, endStructuredOutput: { value: { verdict: 'ok' } } });
    expect(transitions).toEqual(['opened', 'tool_results']);
    const results = requests[1]!.messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content));
    expect(results[1]).toMatch(/^Not taken: call StructuredOutput alone/);
  });

  // Trap: the gate's reason stands between the call and the result that is still owed for it.
  it('an answer that the stop gate sends back has its result, and the newer one counts', async () => {
    const { end, requests, transitions } = await play('gated', 'tester', (_, n) =>
      hand({ verdict: n === 0 ? 'bad' : 'ok' }),
    );
    expect(transitions).toEqual(['opened', 'stop_gate']);
    expect(requests[1]!.messages.slice(-3).map(({ role, content }) => [role, content])).toEqual([
      ['assistant', null],
      ['tool', 'The answer is taken.'],
      ['user', 'Look again.'],
    ]);
    expect(end.endStructuredOutput).toEqual({ value: { verdict: 'ok' } });
  });

  it('three tries share one budget, whatever was wrong; then COMPLETED with the error', async () => {
    const { end, requests, transitions, batches } = await play('never fits', 'tester', (_, n) =>
      n === 0
        ? hand({ verdict: 'maybe' })
        : n === 1
          ? say('All good.')
          : n === 2
            ? hand({}, {})
            : say('{"verdict": 1}'),
    );
    expect(end).toMatchObject({ endReason: 'COMPLETED', endDetail: 'final_answer' });
    expect(end.endStructuredOutput).toEqual({ error: 'invalid' });
    expect(transitions).toEqual(['opened', 'structured_retry', 'structured_retry', 'structured_retry']);
    expect(requests).toHaveLength(4);
    // The faults went back: once as the result of the call, then as a message of the runtime.
    expect(requests[1]!.messages.at(-1)).toMatchObject({ role: 'tool' });
    expect(String(requests[1]!.messages.at(-1)?.content)).toContain('verdict');
    expect(newestUserText(requests[2]!)).toBe(
      'Your answer does not fit the schema that was asked for. Give the whole answer again.\nThere is no JSON object in it.',
    );
    expect(batches).toBe(0);
  });
});

describe.concurrent('as the format of the reply, where the provider takes one', () => {
  it('costs no further call, and offers no tool', async () => {
    const { end, requests } = await play('native', 'native', () => say('{"verdict":"ok","items":null}'));
    expect(end.endStructuredOutput).toEqual({ value: { verdict: 'ok' } });
    expect(requests).toHaveLength(1);
    expect(formatOf(requests[0]!)).toBe('json_schema');
    expect(toolsOf(requests[0]!)).not.toContain('StructuredOutput');
  });

  it.each([
    ['fences', '```json\n{"verdict": "ok"}\n```'],
    ['text around it', 'Here it is:\n{"verdict": "ok"}\nHave a good day.'],
  ])('%s are no fault', async (name, text) => {
    const { end, requests } = await play(`tolerated ${name}`, 'native', () => say(text));
    expect(end.endStructuredOutput).toEqual({ value: { verdict: 'ok' } });
    expect(requests).toHaveLength(1);
  });

  it('whole JSON counts though the label says cut', async () => {
    const { end, requests } = await play('label', 'native', () => say('{"verdict": "ok"}', { finish: 'length' }));
    expect(end).toMatchObject({ endReason: 'COMPLETED', endStructuredOutput: { value: { verdict: 'ok' } } });
    expect(requests).toHaveLength(1);
  });

  it('a refusal ends at once', async () => {
    const { end, requests } = await play('refused', 'native', () => say('I can’t.', { finish: 'content_filter' }));
    expect(end).toMatchObject({ endDetail: 'refused', endStructuredOutput: { error: 'refused' } });
    expect(requests).toHaveLength(1);
  });
});

describe.concurrent('truncated is not malformed', () => {
  it('the fragment never goes back, the prompt does not grow, and it is bounded', async () => {
    const { end, requests, transitions, session } = await play('half a list', 'small', (_, n) =>
      chunks([C({ content: `{"verdict":"ok","items":["fragment-${n}` }), F('length'), U(10, 10), D]),
    );
    expect(end).toMatchObject({ endReason: 'COMPLETED', endStructuredOutput: { error: 'cut' } });
    expect(transitions).toEqual(['opened', 'answer_cut', 'answer_cut', 'answer_cut']);
    const sizes = requests.map(({ messages }) => JSON.stringify(messages).length);
    expect(new Set(sizes.slice(1)).size).toBe(1);
    for (const request of requests) expect(JSON.stringify(request)).not.toContain('fragment');
    expect((await at.transcript(session)).map(({ kind }) => kind)).toEqual(['user', 'reminder']);
  });
});

describe.concurrent('with a contract', () => {
  it('the schema stands in no required tool’s way: it is dropped for the rerun, and the valid answer kept', async () => {
    const { end, requests, transitions } = await play('answer, then the tool', 'files-first', (request, n) =>
      n === 0
        ? hand({ verdict: 'ok' })
        : countToolResults(request) === 1
          ? callTools([{ name: 'list_files', arguments: {} }])
          : say('Now it is done.'),
    );
    expect(transitions).toEqual(['opened', 'contract_rerun', 'tool_results']);
    expect(requests.map((request) => toolsOf(request).includes('StructuredOutput'))).toEqual([true, false, false]);
    expect(newestUserText(requests[1]!)).toBe(
      'A tool that this task requires has not succeeded yet. Call it before you finish.\n- list_files',
    );
    expect(end).toMatchObject({
      endReason: 'COMPLETED',
      endContract: 'met',
      endStructuredOutput: { value: { verdict: 'ok' } },
    });
  });
});
