import { randomBytes } from 'node:crypto';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { markDispatched, storeInput } from '../../activities/store/intake.ts';
import { call, effect } from '../../activities/store/schema.ts';
import { defineTool, type Tool, type ToolResult } from '../../activities/tools/define-tool.ts';
import { callTools, countToolResults, hold, paced, say } from '../../testing/index.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import { turnWorkflowId } from '../../workflows/messages.ts';
import { conversations, userTexts } from '../support/conversations.ts';
import { cancelTurn, closedStatus, only, runsOf, sessionHandle, turnHandle } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

const { killAfterMs, heedMs } = POLICY.tools;
/** From the signal until a tool that does not heed it is left. */
const LEFT_AFTER_MS = killAfterMs + heedMs;

/** What became of the tools that nothing stops. */
const running = new Map<string, () => void>();
const input = z.strictObject({ name: z.string() });

function deaf(name: string, change: Partial<Tool<z.output<typeof input>>>): Tool {
  return defineTool({
    name,
    description: name,
    input,
    ...change,
    run: (args) =>
      new Promise<ToolResult>((resolve) => {
        running.set(args.name, () => resolve({ isError: false, text: 'after all' }));
      }),
  }) as Tool;
}

const tools = [
  deaf('deaf_reader', { effect: 'none', timeLimitMs: 300 }),
  deaf('deaf_once', { effect: 'once', onUnknown: 'tell', timeLimitMs: 60_000 }),
];
const talk = conversations();
let at: TestHouse;
beforeAll(async () => {
  at = await testHouse({ rules: talk.rules, tools });
});
afterAll(async () => {
  for (const end of running.values()) end();
  await at.close();
});

async function begin(tool: string) {
  const text = `${tool}-${randomBytes(4).toString('hex')}`;
  talk.on(text, (request) =>
    countToolResults(request) === 0 ? callTools([{ name: tool, arguments: { name: text } }]) : say('I go on.'),
  );
  const { session } = await at.submit(text);
  await until('the tool runs', () => running.has(text));
  return { text, session, begun: Date.now() };
}

async function callOf(session: string) {
  const { db } = at.house.database;
  const [row] = await db
    .select()
    .from(call)
    .where(eq(call.turn, `${session}/1`));
  const [ledger] = await db
    .select()
    .from(effect)
    .where(eq(effect.turn, `${session}/1`));
  return { call: row, state: ledger?.state };
}

describe.concurrent('a tool that does not heed its signal is left', () => {
  it('at its time limit: the model is told, and the turn goes on', { timeout: 60_000 }, async () => {
    const { session, begun } = await begin('deaf_reader');
    expect(await at.ended(session, 1, LEFT_AFTER_MS + 15_000)).toMatchObject({ endReason: 'COMPLETED', endStep: 1 });
    expect(Date.now() - begun).toBeGreaterThanOrEqual(LEFT_AFTER_MS);
    expect(await callOf(session)).toMatchObject({
      call: { status: 'error', note: 'timeout', result: 'The tool did not finish within 0.3 s.' },
    });
  });

  it('after a cancel: the turn ends, within its cleanup deadline, and says that nobody knows', {
    timeout: 60_000,
  }, async () => {
    const { text, session } = await begin('deaf_once');
    const asked = Date.now();
    await cancelTurn(at, `${session}/1`, 'a person');
    expect(await at.ended(session, 1, POLICY.cleanup.deadlineMs)).toMatchObject({
      endReason: 'ABORTED',
      endDetail: 'user_cancel',
      endPhase: 'tools',
    });
    expect(Date.now() - asked).toBeGreaterThanOrEqual(LEFT_AFTER_MS);
    expect(await closedStatus(at, turnWorkflowId(`${session}/1`))).toBe('CANCELLED');
    const left = await callOf(session);
    expect(left).toMatchObject({ call: { status: 'unknown', note: 'unknown_outcome' }, state: 'unknown' });
    // What it says when nobody listens any more changes nothing.
    running.get(text)?.();
    expect(await callOf(session)).toEqual(left);
    expect(only(await at.events(session), 'call.finished')).toHaveLength(1);
  });
});

// Trap: such a session found no end to wait for, went over to a new run, and found the same there, without end.
describe.concurrent('a session that is cancelled when its turn is gone', () => {
  it.each([
    ['before the cancel', true],
    ['after the cancel', false],
  ])('%s does not spin: the turn gets its end, and the queue goes on', { timeout: 90_000 }, async (when, before) => {
    const stop = hold();
    const text = `gone ${when}`;
    talk.on(text, (request) =>
      userTexts(request).length === 1 ? paced(say('Slow.'), { hold: stop, holdAt: 1 }) : say('Quick.'),
    );
    const { session } = await at.submit(text);
    await stop.reached;
    const queued = await at.send(session, 'prompt', 'the next one');
    const kill = () => turnHandle(at, `${session}/1`).terminate('a test');
    const cancel = () => sessionHandle(at, session).cancel();
    await (before ? kill() : cancel());
    await (before ? cancel() : kill().catch(() => {}));
    const end = await at.ended(session, 1, 60_000);
    const reasons = before ? ['INTERRUPTED/terminated'] : ['INTERRUPTED/terminated', 'ABORTED/user_cancel'];
    expect(reasons).toContain(`${end.endReason}/${end.endDetail}`);
    expect(await at.ended(session, 2, 60_000)).toMatchObject({ endReason: 'COMPLETED', input: queued });
    expect(only(await at.events(session), 'turn.ended', `${session}/1`)).toHaveLength(1);
    const runs = await runsOf(at, `session/${session}`);
    expect(runs.length).toBeLessThanOrEqual(3);
    const looks = runs
      .flatMap(({ events }) => events ?? [])
      .filter((event) => event.activityTaskScheduledEventAttributes);
    expect(looks.length).toBeLessThan(40);
  });
});

// Trap: who terminates the driver of a session takes with it what it was about to tell the turn.
it.concurrent('a message whose driver is terminated is heard by the running turn all the same', {
  timeout: 90_000,
}, async () => {
  const stop = hold();
  const text = 'driver gone';
  talk.on(text, (request) =>
    userTexts(request).length === 1 ? paced(say('Slow.'), { hold: stop, holdAt: 1 }) : say('Heard.'),
  );
  const { session } = await at.submit(text);
  await stop.reached;
  await sessionHandle(at, session).terminate('a test');
  const { db } = at.house.database;
  await storeInput(db, { id: 'lost word', session, kind: 'send_now', text: 'now', sender: null });
  await markDispatched(db, ['lost word']);
  expect(await at.ended(session, 1, 60_000)).toMatchObject({ endReason: 'COMPLETED' });
  const said = (await at.transcript(session)).map(({ kind }) => kind);
  expect(said).toEqual(['user', 'user', 'assistant']);
  expect(only(await at.events(session), 'turn.opened')).toHaveLength(1);
});
