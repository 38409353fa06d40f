import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { defineTool, type Tool, type ToolResult } from '../../activities/tools/define-tool.ts';
import { callTools, countToolResults, say } from '../../testing/index.ts';
import { conversations } from '../support/conversations.ts';
import { only } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

const NAMES = ['first', 'second', 'third'];
const answers = new Map<string, () => void>();
const input = z.strictObject({ name: z.string() });
const held = defineTool({
  name: 'held',
  description: 'Answers when the test says so.',
  input,
  effect: 'none',
  run: ({ name }: z.output<typeof input>) =>
    new Promise<ToolResult>((resolve) => {
      answers.set(name, () => resolve({ isError: false, text: name }));
    }),
}) as Tool;

const talk = conversations();
let at: TestHouse;
beforeAll(async () => {
  at = await testHouse({ rules: talk.rules, tools: [held] });
});
afterAll(async () => {
  await at.close();
});

it('calls run side by side: progress as they end, results in the order in which they were asked for', async () => {
  talk.on('batch', (request) =>
    countToolResults(request) === 0
      ? callTools(NAMES.map((name) => ({ name: 'held', arguments: { name } })))
      : say('Done.'),
  );
  const { session } = await at.submit('batch');
  await until('all run', () => answers.size === NAMES.length);
  for (const [n, name] of NAMES.toReversed().entries()) {
    answers.get(name)?.();
    await until('its end is told', async () => only(await at.events(session), 'call.finished').length > n);
  }
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED', endStep: 1 });
  const events = await at.events(session);
  const asked = only(events, 'call.requested').map(({ key }) => key);
  expect(only(events, 'call.finished').map(({ key }) => asked.indexOf(key))).toEqual([2, 1, 0]);
  const results = (await at.transcript(session)).flatMap((body) => (body.kind === 'tool_result' ? [body.text] : []));
  expect(results).toEqual(NAMES);
});
