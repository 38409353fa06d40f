import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { createHooks } from '../../activities/gate/hooks.ts';
import { defineTool } from '../../activities/tools/define-tool.ts';
import { createRegistry } from '../../activities/tools/registry.ts';
import { type ApprovalReply, createRuns, type OpenApproval, type Runs } from '../../client/index.ts';
import { callTools, countToolResults, hold, paced, say } from '../../testing/index.ts';
import type { Config } from '../../worker/config/load.ts';
import type { RunningWorker } from '../../worker/start-worker.ts';
import { conversations } from '../support/conversations.ts';
import { lengthen, only, runsOf } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

const talk = conversations();
let at: TestHouse;
let runs: Runs;
let worker: RunningWorker;

/** What the world saw: one entry for each time that a call really ran. */
const made: string[] = [];

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: z.strictObject({ at: z.string() }),
  effect: 'none',
  run: ({ at: what }) => {
    made.push(what);
    return Promise.resolve({ isError: false, text: `looked at ${what}` });
  },
});

const act = defineTool({
  name: 'act',
  description: 'Acts.',
  input: z.strictObject({ on: z.string() }),
  effect: 'once',
  locks: ({ on }) => [{ resource: on, mode: 'write' }],
  run: ({ on }) => {
    made.push(on);
    return Promise.resolve({ isError: false, text: `acted on ${on}` });
  },
});

const acts = (...names: readonly string[]) => names.map((on) => ({ name: 'act', arguments: { on } }));

beforeAll(async () => {
  at = await testHouse({
    rules: talk.rules,
    worker: false,
    tools: [look, act],
    agent: { attended: true, permissions: { mode: 'default' } },
    definition: {
      hooks: [
        {
          event: 'PreToolUse',
          tool: 'act',
          run: ({ args }) => ({ rewrite: { on: `${String((args as { on: string }).on)}, as the rule says` } }),
        },
      ],
    },
  });
  runs = createRuns(at.house);
  worker = await at.startWorker();
});
beforeEach(() => {
  made.length = 0;
});
afterAll(async () => {
  await at.close();
});

async function restart(deployed: Partial<Config> = {}): Promise<void> {
  await worker.stop();
  worker = await at.startWorker(deployed);
}

/** The open approval of a session; `not` is one that was answered already. */
async function asked(session: string, not?: string): Promise<OpenApproval> {
  return await until('an approval', async () =>
    (await runs.approvals('default')).find((each) => each.session === session && each.id !== not),
  );
}

const answer = (id: string, reply: Partial<ApprovalReply> = {}) =>
  runs.answer('default', id, { answer: 'approved', by: 'pat', ...reply });

async function results(session: string): Promise<string[]> {
  return (await at.transcript(session)).flatMap((message) => (message.kind === 'tool_result' ? [message.text] : []));
}

const withoutAct = () =>
  createRegistry(
    at.config.registry.names.flatMap((name) => {
      const found = at.config.registry.lookup(name);
      return found.ok && name !== 'act' ? [found.tool] : [];
    }),
  );

const ruled = (on: string) => `${on}, as the rule says`;

// Case 27: several approvals in one message, over a restart (with a reject it would be a fuse).
it('three asks of one message, each decided alone over a restart: all run once, the model is called when all are settled', async () => {
  talk.on('three', (request) =>
    countToolResults(request) > 0
      ? say('Done.')
      : callTools([{ name: 'look', arguments: { at: 'c0' } }, ...acts('c1', 'c2', 'c3')]),
  );
  const { session } = await at.submit('three');
  const c1 = await asked(session);
  await answer(c1.id);
  const c2 = await asked(session, c1.id);
  await answer(c2.id);
  const c3 = await asked(session, c2.id);
  expect(new Set([c1.id, c2.id, c3.id]).size).toBe(3);
  await restart();
  expect(made).toEqual([]);
  await answer(c3.id);
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
  expect(made.toSorted()).toEqual(['c0', ruled('c1'), ruled('c2'), ruled('c3')]);
  expect(await results(session)).toEqual([
    'looked at c0',
    ...['c1', 'c2', 'c3'].map((name) => `acted on ${ruled(name)}`),
  ]);
  expect(talk.requestsOf(at.provider, 'three')).toHaveLength(2);
});

// Case 29: the rule that asked is code, and code may be gone when the answer comes.
describe('a rule in code that has gone, or throws, after a restart', () => {
  const gone = () => ({ hooks: createHooks([], '.') });
  const throwing = () => ({
    hooks: createHooks([{ event: 'PreToolUse', run: () => Promise.reject(new Error('no such rule')) }], '.'),
  });

  it.each([
    ['gone', 'rejected', 'ABORTED', 0, gone],
    ['gone', 'approved', 'COMPLETED', 1, gone],
    ['throwing', 'rejected', 'ABORTED', 0, throwing],
    ['throwing', 'approved', 'COMPLETED', 1, throwing],
  ] as const)('%s, then %s: %s, with %d effects', async (how, reply, end, effects, deployed) => {
    const name = `rule ${how} ${reply}`;
    talk.on(name, (request) => (countToolResults(request) > 0 ? say('Done.') : callTools(acts(name))));
    const { session } = await at.submit(name);
    const { id, asked: shown } = await asked(session);
    // What was asked is stored with the wait, and is what runs.
    expect(JSON.parse(shown.arguments)).toEqual({ on: ruled(name) });
    await restart(deployed());
    await answer(id, { answer: reply });
    expect(await at.ended(session)).toMatchObject({ endReason: end });
    expect(made).toEqual(Array.from({ length: effects }, () => ruled(name)));
    await restart();
  });
});

// Case 31: approved, but what it was for is no longer there.
it('a tool that went in a deploy: the approval is taken, the model is told, the session goes on', async () => {
  talk.on('tool gone', (request) => (countToolResults(request) > 0 ? say('Done.') : callTools(acts('x'))));
  const { session } = await at.submit('tool gone');
  const { id } = await asked(session);
  await restart({ registry: withoutAct() });
  expect(await answer(id)).toEqual({ kind: 'recorded' });
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
  expect(await results(session)).toEqual(['This tool no longer exists, so the approved call did not run.']);
  await at.send(session, 'prompt', 'what now?');
  expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED' });
  expect(made).toEqual([]);
  await restart();
});

it('a yes is asked for once: the second one is told that the first stands, before and after the call ran', async () => {
  talk.on('twice', (request) => (countToolResults(request) > 0 ? say('Done.') : callTools(acts('x', 'y'))));
  const { session } = await at.submit('twice');
  const x = await asked(session);
  const stands = { kind: 'answered_before', answer: 'approved', by: 'pat' };
  expect(await answer(x.id)).toEqual({ kind: 'recorded' });
  expect(await answer(x.id, { by: 'sam', answer: 'rejected' })).toEqual(stands);
  const y = await asked(session, x.id);
  await answer(y.id);
  await at.ended(session);
  expect(await answer(x.id, { by: 'sam' })).toEqual(stands);
  expect(made.toSorted()).toEqual([ruled('x'), ruled('y')]);
  expect(only(await at.events(session), 'approval.opened')).toHaveLength(2);
});

it('nobody knows an approval of another tenant, nor one that there never was', async () => {
  talk.on('theirs', (request) => (countToolResults(request) > 0 ? say('Done.') : callTools(acts('x'))));
  const { session } = await at.submit('theirs');
  const { id } = await asked(session);
  expect(await runs.answer('somebody', id, { answer: 'approved', by: 'eve' })).toBeNull();
  expect(await answer('apr_nothing')).toBeNull();
  await answer(id, { answer: 'rejected' });
  expect(await at.ended(session)).toMatchObject({ endDetail: 'permission_rejected' });
  expect(made).toEqual([]);
});

// The update goes to the workflow by its id, and a fresh run knows nothing of what an older one was told.
it('after the turn continued as new: the old answer stands, the new question is answered, each call ran once', async () => {
  const stop = hold();
  talk.on('continued', (request) => {
    const done = countToolResults(request);
    if (done === 0) return callTools(acts('first'));
    return done === 1
      ? paced(callTools([{ name: 'look', arguments: { at: 'between' } }]), { hold: stop })
      : second(done);
  });
  const second = (done: number) => (done === 2 ? callTools(acts('second')) : say('Done.'));
  const { session } = await at.submit('continued');
  const first = await asked(session);
  await answer(first.id);
  await stop.reached;
  await lengthen(at, `${session}/1`, 495);
  stop.release();
  const next = await asked(session, first.id);
  expect(await runsOf(at, `turn/${session}/1`)).toHaveLength(2);
  expect(await answer(first.id, { by: 'sam' })).toEqual({ kind: 'answered_before', answer: 'approved', by: 'pat' });
  await restart();
  expect(await answer(next.id)).toEqual({ kind: 'recorded' });
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
  expect(made).toEqual([ruled('first'), 'between', ruled('second')]);
});
