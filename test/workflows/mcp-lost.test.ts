import { eq } from 'drizzle-orm';
import { expect, it, onTestFinished } from 'vitest';
import { effect } from '../../activities/store/schema.ts';
import { callTools, countToolResults, say } from '../../testing/index.ts';
import { type Answering, fakeHttp } from '../activities/mcp/fake-http.ts';
import { conversations } from '../support/conversations.ts';
import { only } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

const TOOLS = [
  { name: 'send', inputSchema: { type: 'object' } },
  { name: 'look', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } },
];
const LOST = ['drop', 'session_gone', 'gateway_timeout'] as const satisfies readonly Answering[];

const talk = conversations();

async function houseWith(url: string): Promise<TestHouse> {
  const at = await testHouse({
    rules: talk.rules,
    agent: { tools: ['mcp__post__*'], permissions: { mode: 'bypass' } },
    definition: { mcp: { post: { url } } },
  });
  onTestFinished(() => at.close());
  return at;
}

function callOf(at: TestHouse, tool: string, how: string) {
  const text = `${tool} ${how}`;
  talk.on(text, (request) =>
    countToolResults(request) === 0 ? callTools([{ name: `mcp__post__${tool}`, arguments: {} }]) : say('Done.'),
  );
  return at.submit(text);
}

// Trap: whoever reconnects and sends again does it twice.
it('an acting call whose answer is lost is unknown, is not sent again, and ends the turn', {
  timeout: 120_000,
}, async () => {
  const server = await fakeHttp(TOOLS);
  const at = await houseWith(server.url);
  const sessions: string[] = [];
  for (const [n, how] of LOST.entries()) {
    server.answerWith(how);
    sessions.push((await callOf(at, 'send', how)).session);
    await until('the effect', () => server.effects.length === n + 1);
  }
  for (const session of sessions) {
    expect(await at.ended(session, 1, 60_000)).toMatchObject({
      endReason: 'INTERRUPTED',
      endDetail: 'unknown_outcome',
      recordedBy: 'recovery',
    });
    const ledger = await at.house.database.db
      .select()
      .from(effect)
      .where(eq(effect.turn, `${session}/1`));
    expect(ledger).toMatchObject([{ tool: 'mcp__post__send', effect: 'once', state: 'unknown' }]);
    expect(only(await at.events(session), 'call.finished')).toMatchObject([{ status: 'unknown_ends_turn' }]);
  }
  expect(server.effects).toEqual(['send', 'send', 'send']);
});

it('a reading call is sent once more, and the turn goes on', { timeout: 60_000 }, async () => {
  const server = await fakeHttp(TOOLS);
  const at = await houseWith(server.url);
  server.answerWith('session_gone');
  const { session } = await callOf(at, 'look', 'again');
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
  expect(server.effects).toEqual(['look', 'look']);
});
