import { mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Hook, HookAnswer, HookInput } from '../../activities/gate/hook-types.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import { turnState, turnWorkflowId } from '../../workflows/messages.ts';
import { callTools, countToolResults, hold, say } from '../../testing/index.ts';
import { conversations, userTexts } from '../support/conversations.ts';
import { cancelTurn, closedStatus, only, runsOf, turnHandle } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

type Gate = (input: HookInput, signal: AbortSignal) => HookAnswer | null | Promise<HookAnswer | null>;

/** Named as the workspace of the session that they are for; all others pass. */
const gates = new Map<string, readonly Gate[]>();
const asked: HookInput[] = [];

/** The n-th hook of the gate. */
function gate(n: number): Hook {
  return {
    event: 'StopGate',
    run(input, signal) {
      if (n === 0) asked.push(input);
      return gates.get(basename(input.workspace))?.[n]?.(input, signal);
    },
  };
}

const talk = conversations();
let at: TestHouse;
beforeAll(async () => {
  at = await testHouse({ rules: talk.rules, definition: { hooks: [gate(0), gate(1), gate(2)] } });
});
afterAll(async () => {
  await at.close();
});

async function begin(name: string, ...own: readonly Gate[]): Promise<string> {
  gates.set(name, own);
  mkdirSync(join(at.workspaces, name), { recursive: true });
  return (await at.submit(name, { workspace: name })).session;
}

const asksOf = (session: string) => asked.filter((input) => input.session === session);
const transitions = async (session: string) =>
  only(await at.events(session), 'sample.started').map(({ transition }) => transition);

it('a block goes to the model as a user message, and the turn ends when the gate lets it', async () => {
  talk.on('block', (request) => say(userTexts(request).length > 1 ? 'Now it is done.' : 'Done.'));
  const session = await begin('block', ({ lastText }) =>
    lastText === 'Done.' ? { decision: 'block', reason: 'The tests of the CUSTOMER fail.' } : null,
  );
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED', endDetail: 'final_answer' });
  expect((await at.transcript(session)).map((message) => [message.kind, message.text])).toEqual([
    ['user', 'block'],
    ['assistant', 'Done.'],
    ['reminder', 'The tests of the CUSTOMER fail.'],
    ['assistant', 'Now it is done.'],
  ]);
  const requests = talk.requestsOf(at.provider, 'block').map(({ body }) => userTexts(body));
  expect(requests).toEqual([['block'], ['block', 'The tests of the CUSTOMER fail.']]);
  expect(await transitions(session)).toEqual(['opened', 'stop_gate']);
  expect(only(await at.events(session), 'stop_gate.answered').map(({ answer, hook }) => [answer, hook])).toEqual([
    ['block', 'StopGate 1'],
    ['pass', null],
  ]);
});

it('is told what the turn looks like, and that it goes on because of the gate', async () => {
  talk.on('told', (request) => say(`Said ${userTexts(request).length}.`));
  let blocks = 0;
  const session = await begin('told', () => (++blocks > 2 ? null : { decision: 'block', reason: `No ${blocks}.` }));
  await at.ended(session);
  expect(asksOf(session)).toEqual(
    [1, 2, 3].map((ask) => ({
      event: 'StopGate',
      session,
      turn: `${session}/1`,
      workspace: join(at.workspaces, 'told'),
      head: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      lastText: `Said ${ask}.`,
      ask,
      stopHookActive: ask > 1,
      backgroundWork: [],
    })),
  );
});

// Customers' words must not get into a history that operators read.
it('of what a hook says nothing is in the history', async () => {
  talk.on('secret', (request) => say(userTexts(request).length > 1 ? 'Better.' : 'Done.'));
  const session = await begin('secret', ({ lastText }) =>
    lastText === 'Done.' ? { decision: 'block', reason: 'LOREM-1' } : { continue: false, stopReason: 'LOREM-2' },
  );
  expect(await at.ended(session)).toMatchObject({ endDetail: 'hook_stop', endWhy: 'LOREM-2' });
  const workflowId = turnWorkflowId(`${session}/1`);
  expect(await closedStatus(at, workflowId)).toBe('CANCELLED');
  const text = (await runsOf(at, workflowId)).map((history) => historyToJSON(history)).join('\n');
  const payloads = [...text.matchAll(/"data":\s*"([A-Za-z0-9+/=]+)"/g)].map(([, data = '']) => atob(data)).join('\n');
  expect(payloads).toContain('stop_gate');
  expect(payloads + text).not.toMatch(/LOREM/);
});

it('every hook sees the same, the first block is the reason, and `continue: false` wins over all', async () => {
  talk.on('order', (request) => say(userTexts(request).length > 1 ? 'Again.' : 'Done.'));
  const session = await begin(
    'order',
    () => ({ decision: 'block', reason: 'The first.' }),
    ({ lastText }) =>
      lastText === 'Done.' ? { decision: 'block', reason: 'The second.' } : { continue: false, stopReason: 'Enough.' },
    () => ({ decision: 'block', reason: 'The third.' }),
  );
  expect(await at.ended(session)).toMatchObject({
    endReason: 'ABORTED',
    endDetail: 'hook_stop',
    endDecidedBy: 'runtime',
    endSignal: { name: 'hook', id: 'StopGate 2' },
    endBy: 'StopGate 2',
    endWhy: 'Enough.',
  });
  expect((await at.transcript(session)).map(({ text }) => text)).toEqual(['order', 'Done.', 'The first.', 'Again.']);
});

it('at the cap no hook is asked: the turn ends', { timeout: 60_000 }, async () => {
  talk.on('cap', (request) => say(`Try ${userTexts(request).length}.`));
  const session = await begin('cap', ({ ask }) => ({ decision: 'block', reason: `Block ${String(ask)}.` }));
  expect(await at.ended(session, 1, 60_000)).toMatchObject({ endReason: 'COMPLETED', endDetail: 'final_answer' });
  expect(asksOf(session)).toHaveLength(POLICY.stopGate.asksPerTurn);
  expect((await transitions(session)).slice(1)).toEqual(Array(POLICY.stopGate.asksPerTurn).fill('stop_gate'));
});

it('hooks that fail let the turn end, and are reported', async () => {
  talk.on('failing', () => say('Done.'));
  const session = await begin(
    'failing',
    () => Promise.reject(new Error('LOREM')),
    () => ({ deny: 'that is the answer to another question' }),
  );
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
  expect(only(await at.events(session), 'hook.failed')).toEqual([
    { kind: 'hook.failed', layer: 'turn', hook: 'StopGate 1', why: 'threw Error' },
    { kind: 'hook.failed', layer: 'turn', hook: 'StopGate 2', why: 'its answer is neither block nor continue: false' },
  ]);
});

it('is not asked after an error, a refusal, a limit', async () => {
  talk.on('refused', () => say('No.', { finish: 'content_filter' }));
  talk.on('cut', () => say('And so', { finish: 'length' }));
  const sessions = [await begin('refused'), await begin('cut'), await begin('nobody wrote this one')];
  const details = await Promise.all(sessions.map(async (session) => (await at.ended(session)).endDetail));
  expect(details).toEqual(['refused', 'output_limit', 'invalid_request']);
  expect(sessions.flatMap(asksOf)).toEqual([]);
});

// A hook may take ten minutes; a person who cancels does not wait for it.
it('a cancel cuts the hook, and is the end', async () => {
  talk.on('cancelled', () => say('Done.'));
  const running = hold();
  let cut = false;
  const session = await begin('cancelled', async (_, signal) => {
    running.reach();
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    cut = true;
    return { decision: 'block', reason: 'too late' };
  });
  await running.reached;
  await cancelTurn(at, `${session}/1`, 'pat');
  expect(await at.ended(session)).toMatchObject({ endDetail: 'user_cancel', endBy: 'pat', endPhase: 'ending' });
  expect(cut).toBe(true);
  expect((await at.transcript(session)).map(({ kind }) => kind)).toEqual(['user', 'assistant', 'interruption']);
  expect(only(await at.events(session), 'stop_gate.answered')).toEqual([]);
});

it('a message that comes while the gate is asked goes to the model in the same turn', async () => {
  talk.on('meanwhile', (request) => say(`Heard ${userTexts(request).length}.`));
  const running = hold();
  const session = await begin('meanwhile', async ({ ask }) => {
    if (ask !== 1) return null;
    running.reach();
    await running.released;
    return null;
  });
  await running.reached;
  const steer = await at.send(session, 'steer', 'and this');
  await until('it is passed on', async () =>
    (await turnHandle(at, `${session}/1`).query(turnState)).inbox.includes(steer),
  );
  running.release();
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
  expect((await at.transcript(session)).map(({ text }) => text)).toEqual([
    'meanwhile',
    'Heard 1.',
    'and this',
    'Heard 2.',
  ]);
  expect(await transitions(session)).toEqual(['opened', 'input_arrived']);
});

it('tool rounds after a block are rounds like any other', async () => {
  talk.on('works on', (request) =>
    userTexts(request).length > 1 && countToolResults(request) === 0
      ? callTools([{ name: 'list_files', arguments: {} }])
      : say('Done.'),
  );
  const session = await begin('works on', ({ ask }) =>
    ask === 1 ? { decision: 'block', reason: 'Look first.' } : null,
  );
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED', endStep: 1 });
  expect(await transitions(session)).toEqual(['opened', 'stop_gate', 'tool_results']);
});
