import { afterAll, beforeAll, expect, test } from 'vitest';
import { costOf } from '../../client/cost.ts';
import { usage } from '../../activities/store/schema.ts';
import { C, callTools, chunks, D, F, hold, paced, type Reply, say, T } from '../../testing/index.ts';
import { eq } from 'drizzle-orm';
import { conversations } from '../support/conversations.ts';
import { cancelTurn } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';

const talk = conversations();
let at: TestHouse;
beforeAll(async () => {
  at = await testHouse({
    rules: talk.rules,
    // 100 tokens in and 10 out cost 200 micro-USD.
    agent: { prices: { input: 1, output: 10 } },
    others: [
      { name: 'half-a-milli', limits: { maxUsd: 0.0005 } },
      { name: 'one-milli', limits: { maxUsd: 0.001, outputTokens: 100 } },
      { name: 'small-cap', limits: { outputTokens: 100 } },
    ],
  });
});
afterAll(() => at.close());

const reading = () => callTools([{ name: 'list_files', arguments: {} }]);
/** A whole answer from a provider that never reports its usage. */
const untold = (): Reply => chunks([T(0, 'c1', 'list_files', '{}'), F('tool_calls'), D]);
const rowsOf = (turn: string) => at.house.database.db.select().from(usage).where(eq(usage.turn, turn));
const costs = (id: string) => costOf(at.house.database.db, 'default', id);

test('a budget in USD ends the turn before the sample that would go past it', async () => {
  talk.on('half-a-milli', reading);
  const { session, job } = await at.submit('half-a-milli', { agent: 'half-a-milli' });
  const end = await at.ended(session);
  expect(end).toMatchObject({ endReason: 'ABORTED', endDetail: 'budget', endDecidedBy: 'runtime', endStep: 3 });
  expect(end.endSignal).toEqual({ name: 'limit', limit: 'usd', allowed: 0.0005, used: 0.0006 });
  expect(end.endUsage).toEqual({
    inputTokens: 300,
    cachedTokens: 0,
    outputTokens: 30,
    reasoningTokens: 0,
    complete: true,
    microUsd: 600,
    heldMicroUsd: 0,
  });
  expect((await rowsOf(`${session}/1`)).map((row) => row.costMicroUsd)).toEqual([200, 200, 200]);
  const sum = { requests: 3, incomplete: 0, wasted: 0, wastedMicroUsd: 0, microUsd: 600, complete: true };
  expect(await costs(job)).toMatchObject({ ...sum, models: [{ model: 'scripted', ...sum }] });
  expect(await costs(session)).toEqual(await costs(job));
});

// A gateway that leaves usage out must not make a budget endless.
test('a provider that never tells its usage is charged the worst case, and the end says that it is incomplete', async () => {
  talk.on('one-milli', untold);
  const { session, job } = await at.submit('one-milli', { agent: 'one-milli' });
  const end = await at.ended(session);
  expect(end).toMatchObject({ endReason: 'ABORTED', endDetail: 'budget', endStep: 1 });
  const [row] = await rowsOf(`${session}/1`);
  // 100 tokens of output at 10, and the estimated input at 1 micro-USD each.
  expect(row?.worstMicroUsd).toBeGreaterThan(1_000);
  expect(row).toMatchObject({ complete: false, inputTokens: null, costMicroUsd: null });
  expect(end.endSignal).toMatchObject({ name: 'limit', limit: 'usd', used: (row?.worstMicroUsd ?? 0) / 1e6 });
  expect(end.endUsage).toMatchObject({ complete: false, microUsd: 0, heldMicroUsd: row?.worstMicroUsd });
  expect(await costs(job)).toMatchObject({ requests: 1, incomplete: 1, complete: false, microUsd: 0 });
});

test('a reply that was thrown away is paid for, and marked wasted', async () => {
  let asked = 0;
  talk.on('empty first', () => {
    asked += 1;
    return say(asked === 1 ? '' : 'Now.');
  });
  const { session, job } = await at.submit('empty first');
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED', endUsage: { microUsd: 400 } });
  expect(await costs(job)).toMatchObject({ requests: 2, wasted: 1, wastedMicroUsd: 200, microUsd: 400 });
});

test('a cancelled request counts as incomplete: nobody waits for its bill', async () => {
  const stop = hold();
  talk.on('cut off', () => paced(say('One two three.'), { hold: stop, holdAt: 2 }));
  const { session } = await at.submit('cut off', { agent: 'small-cap' });
  await stop.reached;
  await cancelTurn(at, `${session}/1`, 'ann');
  const end = await at.ended(session);
  const [row] = await rowsOf(`${session}/1`);
  expect(end).toMatchObject({ endReason: 'ABORTED', endDetail: 'user_cancel' });
  expect(end.endUsage).toMatchObject({ complete: false, microUsd: 0, heldMicroUsd: row?.worstMicroUsd });
});

test('reports that grow are not added up: the last one counts', async () => {
  const growing = (prompt: number, completion: number) => ({
    choices: [{ index: 0, delta: { content: 'x' }, finish_reason: null }],
    usage: { prompt_tokens: prompt, completion_tokens: completion },
  });
  const empty = { choices: [], usage: { prompt_tokens: 0, completion_tokens: 0 } };
  talk.on('growing', () => chunks([growing(100, 1), growing(100, 5), growing(100, 10), C({}), F('stop'), empty, D]));
  const { session } = await at.submit('growing');
  expect(await at.ended(session)).toMatchObject({
    endReason: 'COMPLETED',
    endUsage: { inputTokens: 100, outputTokens: 10, complete: true, microUsd: 200 },
  });
});
