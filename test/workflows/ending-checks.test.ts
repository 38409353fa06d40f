import { z } from 'zod';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { defineTool } from '../../activities/tools/define-tool.ts';
import { callTools, type ChatRequest, countToolResults, say, status } from '../../testing/index.ts';
import { conversations, newestUserText } from '../support/conversations.ts';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { newMarker, piecesIn } from '../support/marker.ts';
import { cancelTurn, inMs, only, turnHandle, untilResting } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';

/** Goes wrong the first time it is called in a conversation. */
const attempts = new Map<string, number>();
const push = defineTool({
  name: 'push',
  description: 'Pushes.',
  input: z.object({ to: z.string() }),
  effect: 'idempotent',
  run: ({ to }) => {
    const n = (attempts.get(to) ?? 0) + 1;
    attempts.set(to, n);
    return Promise.resolve({ isError: n === 1, text: n === 1 ? 'It was refused.' : 'Pushed.' });
  },
});
const poll = defineTool({
  name: 'poll',
  description: 'Looks whether it is done.',
  input: z.object({}),
  effect: 'none',
  polling: true,
  run: () => Promise.resolve({ isError: false, text: 'Not yet.' }),
});

const talk = conversations();
let at: TestHouse;
beforeAll(async () => {
  at = await testHouse({
    rules: talk.rules,
    expectKey: true,
    tools: [push, poll],
    providers: (baseUrl) => ({ other: { baseUrl, apiKeyEnv: null } }),
    others: [
      { name: 'pushes', contract: { tools: ['push'], maxRetries: 2, baseMs: 30, maxMs: 50 } },
      { name: 'waits-long', contract: { tools: ['push'], baseMs: 3_600_000, maxMs: 3_600_000 } },
      { name: 'plans', tools: ['todo_write', 'list_files'], todoGate: true },
      { name: 'digs', tokenTarget: 4_000 },
      { name: 'falls-back', fallback: { provider: 'other', model: 'second' } },
    ],
  });
});
afterAll(async () => {
  await at.close();
});

async function play(name: string, agent: string, rules: (request: ChatRequest) => ReturnType<typeof say>) {
  talk.on(name, rules);
  const { session } = await at.submit(name, { agent });
  const end = await at.ended(session);
  const events = await at.events(session);
  return {
    end,
    session,
    events,
    requests: talk.requestsOf(at.provider, name).map(({ body }) => body),
    transitions: only(events, 'sample.started').map(({ transition }) => transition),
  };
}

describe.concurrent('the completion contract', () => {
  it('a failed call does not count; the rerun’s success does', async () => {
    const { end, requests, transitions, session } = await play('push it', 'pushes', (request) => {
      const calls = countToolResults(request);
      const reminded = newestUserText(request) !== 'push it';
      if (calls === 0 || (calls === 1 && reminded)) return callTools([{ name: 'push', arguments: { to: 'main' } }]);
      return say('It is pushed.');
    });
    expect(transitions).toEqual(['opened', 'tool_results', 'contract_rerun', 'tool_results']);
    expect(newestUserText(requests[2]!)).toBe(
      'A tool that this task requires has not succeeded yet. Call it before you finish.\n- push',
    );
    expect(end).toMatchObject({ endReason: 'COMPLETED', endDetail: 'final_answer', endContract: 'met' });
    // The delay is a timer of the engine.
    const { events } = await turnHandle(at, `${session}/1`).fetchHistory();
    expect(
      (events ?? []).flatMap(({ timerStartedEventAttributes: timer }) =>
        timer ? [inMs(timer.startToFireTimeout) <= 30] : [],
      ),
    ).toEqual([true]);
  });

  it('a cancel ends its rest at once', async () => {
    talk.on('wait long', () => say('Later.'));
    const { session } = await at.submit('wait long', { agent: 'waits-long' });
    await untilResting(at, `${session}/1`);
    await cancelTurn(at, `${session}/1`, 'somebody');
    expect(await at.ended(session)).toMatchObject({
      endDetail: 'user_cancel',
      endPhase: 'resting',
      endContract: 'unmet',
    });
  });

  it('used up: the last answer stands, marked as unmet', async () => {
    const { end, transitions } = await play('talk about it', 'pushes', () => say('It is as good as pushed.'));
    expect(transitions).toEqual(['opened', 'contract_rerun', 'contract_rerun']);
    expect(end).toMatchObject({ endReason: 'COMPLETED', endDetail: 'final_answer', endContract: 'unmet' });
  });
});

it('the todo gate: two nudges with the list, then COMPLETED/todo_open; the list is in the end, not in the history', async () => {
  const marker = newMarker();
  const todos = [
    { content: 'Read the plan', status: 'completed' },
    { content: `Write ${marker}`, status: 'in_progress' },
    { content: 'Send the letter', status: 'pending' },
  ];
  const { end, requests, transitions, session, events } = await play('plan', 'plans', (request) =>
    countToolResults(request) === 0 ? callTools([{ name: 'todo_write', arguments: { todos } }]) : say('Enough.'),
  );
  expect(transitions).toEqual(['opened', 'tool_results', 'todo_nudge', 'todo_nudge']);
  expect(newestUserText(requests[2]!).split('\n').slice(1)).toEqual([`- Write ${marker}`, '- Send the letter']);
  expect(end).toMatchObject({ endReason: 'COMPLETED', endDetail: 'todo_open', endDecidedBy: 'runtime' });
  expect(end.endSignal).toEqual({
    name: 'open_todos',
    count: 2,
    items: [`Write ${marker}`, 'Send the letter'],
  });
  expect(only(events, 'turn.ended')[0]?.evidence).toEqual({ name: 'open_todos', count: 2 });
  const history = historyToJSON(await turnHandle(at, `${session}/1`).fetchHistory());
  expect(piecesIn(Buffer.from(history), marker)).toEqual([]);
});

it('the token target: goes on until it is idle', async () => {
  const tokens = [1_000, 600, 300, 200, 100];
  const { end, transitions } = await play('dig', 'digs', (request) => {
    const said = request.messages.filter(({ role }) => role === 'assistant').length;
    return say(`Finding ${said}.`, { usage: { prompt: 10, completion: tokens[said] ?? 1 } });
  });
  expect(transitions).toEqual(['opened', 'token_target', 'token_target', 'token_target']);
  expect(end).toMatchObject({ endReason: 'COMPLETED', endUsage: { outputTokens: 2_100 } });
});

describe.concurrent('stationarity', () => {
  it('a reader that is called again and again: told at 4, BLOCKED/no_progress at 8', async () => {
    const { end, requests } = await play('read on', 'tester', () => callTools([{ name: 'list_files', arguments: {} }]));
    expect(requests).toHaveLength(8);
    expect(requests.map((request) => newestUserText(request).startsWith('You are repeating'))).toEqual([
      ...Array<boolean>(4).fill(false),
      ...Array<boolean>(4).fill(true),
    ]);
    expect(end).toMatchObject({ endReason: 'BLOCKED', endDetail: 'no_progress', endDecidedBy: 'runtime', endStep: 8 });
    expect(end.endSignal).toEqual({ name: 'limit', limit: 'identical_steps', allowed: 8, used: 8 });
    // The last results are kept.
    expect((await at.transcript(end.session)).at(-1)).toMatchObject({ kind: 'tool_result', isError: false });
  });

  it('keys in another order are the same call', async () => {
    const orders = ['{"path":".","depth":1}', '{"depth":1,"path":"."}'];
    const { end } = await play('shuffle', 'tester', (request) =>
      callTools([{ name: 'list_files', arguments: orders[countToolResults(request) % 2] }]),
    );
    expect(end).toMatchObject({ endDetail: 'no_progress', endStep: 8 });
  });

  it('a tool that is made for polling has more patience', async () => {
    const { end } = await play('wait for it', 'tester', (request) =>
      countToolResults(request) < 11 ? callTools([{ name: 'poll', arguments: {} }]) : say('It is done.'),
    );
    expect(end).toMatchObject({ endReason: 'COMPLETED', endStep: 11 });
  });
});

describe.concurrent('a provider in trouble', () => {
  it('three overloads in a row: the other model takes over for the rest of the turn, and the user is told', {
    timeout: 60_000,
  }, async () => {
    const { end, session, events, transitions } = await play('too much', 'falls-back', (request) =>
      request.model === 'scripted' && newestUserText(request) === 'too much'
        ? status(529, { error: { message: 'overloaded' } })
        : countToolResults(request) === 0 && request.model === 'second'
          ? callTools([{ name: 'list_files', arguments: {} }])
          : say('Done.'),
    );
    expect(end).toMatchObject({ endReason: 'COMPLETED' });
    expect(transitions).toEqual([
      'opened',
      'retry_after_failure',
      'retry_after_failure',
      'model_switched',
      'tool_results',
    ]);
    expect(only(events, 'sample.started').map(({ model }) => model)).toEqual([
      ...Array<string>(3).fill('scripted'),
      'second',
      'second',
    ]);
    expect(only(events, 'model.switched')).toEqual([
      { kind: 'model.switched', layer: 'turn', from: 'scripted', to: 'second', cause: 'overloaded' },
    ]);
    // The next turn starts with the agent's own model.
    await at.send(session, 'prompt', 'again');
    expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED' });
    expect(only(await at.events(session), 'sample.started', `${session}/2`).map(({ model }) => model)).toEqual([
      'scripted',
    ]);
  });

  it('one that says not to try again: ERROR/provider_unavailable, with a time for the next try', async () => {
    const before = Date.now();
    const { end } = await play('go away', 'tester', () => status(500, 'no', { 'x-should-retry': 'false' }));
    expect(end).toMatchObject({ endReason: 'ERROR', endDetail: 'provider_unavailable' });
    const inMinutes = ((end.endResumeAt?.getTime() ?? 0) - before) / 60_000;
    expect(inMinutes).toBeGreaterThanOrEqual(5);
    expect(inMinutes).toBeLessThan(6);
  });
});
