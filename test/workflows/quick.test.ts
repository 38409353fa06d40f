import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { z } from 'zod';
import { defineTool, type Tool } from '../../activities/tools/define-tool.ts';
import { callTools, countToolResults, say } from '../../testing/index.ts';
import { workflowBundle } from '../../worker/bundle.ts';
import { turnWorkflowId } from '../../workflows/messages.ts';
import { conversations } from '../support/conversations.ts';
import { only, runsOf } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';

/** Hangs when it is called for the first time, until it is told to stop. */
let calls = 0;
const hangs = defineTool({
  name: 'hangs_once',
  description: 'Hangs once.',
  input: z.strictObject({}),
  effect: 'none',
  quick: true,
  run: (_args, { signal }) => {
    calls += 1;
    if (calls > 1) return Promise.resolve({ isError: false, text: `answer ${calls}` });
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve({ isError: true, text: 'stopped', aborted: 'without_effect' }));
    });
  },
}) as Tool;
const answers = defineTool({ ...hangs, name: 'answers', run: () => Promise.resolve({ isError: false, text: 'here' }) });

const talk = conversations();
let shared: TestHouse;
let host: TestHouse;
beforeAll(async () => {
  const tools = [hangs, answers as Tool];
  shared = await testHouse({ rules: talk.rules, tools, definition: { workspaceKind: 'shared' } });
  host = await testHouse({ rules: talk.rules, tools, definition: { workspaceKind: 'host' } });
});
afterAll(async () => {
  await shared.close();
  await host.close();
});

/** Results of a turn with one call, and how often the engine was asked to make it. Its history replays. */
async function callOnce(at: TestHouse, tool: string) {
  talk.on(tool, (request) =>
    countToolResults(request) === 0 ? callTools([{ name: tool, arguments: {} }]) : say('Done.'),
  );
  const { session } = await at.submit(tool);
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED', endStep: 1 });
  const results = (await at.transcript(session)).flatMap((body) => (body.kind === 'tool_result' ? [body.text] : []));
  const [history] = await runsOf(at, turnWorkflowId(`${session}/1`));
  const types = (history?.events ?? []).map((each) => each.activityTaskScheduledEventAttributes?.activityType?.name);
  const finished = only(await at.events(session), 'call.finished').length;
  await Worker.runReplayHistory(
    { workflowBundle: { codePath: await workflowBundle(inject('bundleCache')) } },
    history,
    turnWorkflowId(`${session}/1`),
  );
  return { results, finished, scheduled: types.filter((type) => type === 'runTool').length };
}

it('is called beside the decision, without a round trip through the engine', async () => {
  expect(await callOnce(shared, 'answers')).toEqual({ results: ['here'], finished: 1, scheduled: 0 });
});

// Trap: a workflow task must not wait for a file system that hangs. And a time-out that is replayed looks different
// from one that happens: the next worker must take the usual way as well.
it('that takes too long is called again the usual way', async () => {
  expect(await callOnce(shared, 'hangs_once')).toEqual({ results: ['answer 2'], finished: 1, scheduled: 1 });
});

it('goes to the machine that has the files, where others decide', async () => {
  expect(await callOnce(host, 'answers')).toEqual({ results: ['here'], finished: 1, scheduled: 1 });
});
