import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTool } from '../../../activities/tools/define-tool.ts';
import { whyText } from '../../../client/cli/why-text.ts';
import { createApp } from '../../../client/http/app.ts';
import { WhySchema } from '../../../client/http/why-schema.ts';
import { createRuns, type Runs, type Why } from '../../../client/index.ts';
import { callTools, countToolResults, hold, paced, say, status } from '../../../testing/index.ts';
import { conversations } from '../../support/conversations.ts';
import { turnWorkflowId } from '../../../workflows/messages.ts';
import { cancelTurn, closedStatus, turnHandle, untilResting } from '../../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../../support/test-house.ts';
import { until } from '../../support/until.ts';

/** Nobody can say whether it happened. */
const risky = defineTool({
  name: 'risky',
  description: 'Fails in a way that tells nothing.',
  input: z.strictObject({}),
  effect: 'once',
  onUnknown: 'end',
  run: () => Promise.reject(new Error('the answer was lost')),
});

const MARKER = 'the-customers-own-words';
const talk = conversations();
let at: TestHouse;
let runs: Runs;
beforeAll(async () => {
  at = await testHouse({
    rules: talk.rules,
    tools: [risky],
    agent: { tools: ['ask_user', 'list_files', 'shell', 'risky'] },
    others: [{ name: 'one-step', limits: { maxSteps: 1 } }],
  });
  runs = createRuns(at.house);
});
afterAll(() => at.close());

const ask = async (id: string): Promise<Why> => (await runs.why('default', id)) ?? expect.fail(`${id} is not known`);
const told = ({ chain }: Why) => chain.map(({ layer, reason }) => `${layer}: ${reason}`);

/** The session has come to rest behind its last turn. */
async function rested(session: string): Promise<Why> {
  return await until(`${session} rests`, async () => {
    const why = await ask(session);
    return why.chain.some(({ layer, reason }) => layer === 'driver' && reason !== null) ? why : null;
  });
}

describe('of a turn that has ended', () => {
  test('the chain from the last stream to the goal, and what to do', async () => {
    talk.on(MARKER, () => callTools([{ name: 'list_files', arguments: {} }], { text: MARKER }));
    const { session, job } = await at.submit(MARKER, { agent: 'one-step' });
    await at.ended(session);
    const why = await rested(session);
    expect(why).toMatchObject({
      session,
      job,
      turn: `${session}/1`,
      state: 'ended',
      end: { reason: 'ABORTED', detail: 'max_steps' },
      doing: null,
      waitsFor: [],
      unknownEffects: [],
      agents: [],
      advice: ['See whether it made progress; then raise maxSteps, or hand in smaller tickets.'],
    });
    expect(told(why)).toEqual([
      'stream: tool_calls',
      'batch: all_returned',
      'turn: ABORTED',
      'driver: queue_empty',
      'goal: null',
    ]);
    expect(why.chain[2]?.words).toContain('on limit steps: 1 of 1');
    // By the job and by the turn it is the same.
    expect(await ask(job)).toEqual({ ...why, id: job });
    expect(await ask(`${session}/1`)).toEqual({ ...why, id: `${session}/1` });
    // An operator may read this who may not read the customer's text.
    expect(JSON.stringify(why) + whyText(why)).not.toContain(MARKER);
  });

  test('by a provider’s refusal: its class, status and first line', async () => {
    talk.on('refused', () => status(400, { error: { message: 'no such model: gpt-0' } }));
    const { session } = await at.submit('refused');
    await at.ended(session);
    const why = await ask(`${session}/1`);
    expect(why.chain[0]?.words).toBe(
      'step 0 ended error (invalid_request 400: no such model: gpt-0), decided by the runtime',
    );
    expect(why.chain[2]?.words).toContain('on invalid_request, HTTP 400');
  });

  test('by a cancel while a call ran: the batch is cancelled, and has one end', async () => {
    talk.on('cut', () =>
      callTools([
        { name: 'shell', arguments: { command: 'sleep 60' } },
        { name: 'shell', arguments: { command: 'true' } },
      ]),
    );
    const { session } = await at.submit('cut');
    await until('the command runs', async () =>
      (await at.events(session)).some(({ event }) => event.kind === 'call.started'),
    );
    await cancelTurn(at, `${session}/1`, 'ann', 'enough');
    await at.ended(session);
    const why = await ask(`${session}/1`);
    expect(told(why).slice(0, 3)).toEqual(['stream: tool_calls', 'batch: cancelled', 'turn: ABORTED']);
    expect(why.chain[1]).toMatchObject({ detail: 'user_cancel', decidedBy: 'user', signal: 'cancel_request' });
    expect(why.chain[2]?.words).toContain('Decided by a user (ann), who said “enough”');
    const batches = (await at.events(session)).filter(({ event }) => event.kind === 'batch.ended');
    expect(batches).toHaveLength(1);
  });
});

test('an effect that nobody knows comes first in the advice', { timeout: 60_000 }, async () => {
  talk.on('risky', () => callTools([{ name: 'risky', arguments: {} }]));
  const { session } = await at.submit('risky');
  await at.ended(session, 1, 45_000);
  const why = await ask(session);
  const [unknown] = why.unknownEffects;
  expect(unknown).toMatchObject({ tool: 'risky', effect: 'once', state: 'unknown' });
  expect(why.end).toMatchObject({ reason: 'INTERRUPTED', detail: 'unknown_outcome', recordedBy: 'recovery' });
  const [question] = why.waitsFor;
  expect(question).toMatchObject({ for: 'outcome', tool: 'risky', until: null });
  expect(why.advice).toEqual([
    expect.stringContaining(`whether call ${unknown?.key.slice(0, 12)} took effect is not known`),
    `Say what became of risky: \`pawl outcome ${question?.id} happened\`, \`absent\` or \`again\`.`,
    'Find out whether it did, and say so: `pawl approvals` lists the call, `pawl outcome` takes the answer. Nothing is repeated before.',
  ]);
});

// A title is content, which an operator's list must not show.
test.each([
  ['T-17', ['T-17']],
  ['The login page is broken', undefined],
])('a ticket %j is found by its number only', async (ticket, listed) => {
  talk.on(ticket, () => say('Done.'));
  const submitted = await runs.submit({ tenant: 'default', key: ticket, text: ticket, ticket });
  if (submitted.kind !== 'accepted') throw new Error(submitted.kind);
  await at.ended(submitted.session);
  const { searchAttributes } = await turnHandle(at, `${submitted.session}/1`).describe();
  expect(searchAttributes['PawlTicket']).toEqual(listed);
});

describe('of a turn that runs', () => {
  test('what it does, since when', async () => {
    const stop = hold();
    talk.on('slow', () => paced(say('One two three.'), { hold: stop, holdAt: 2 }));
    const { session } = await at.submit('slow');
    await stop.reached;
    const why = await ask(session);
    expect(why).toMatchObject({ state: 'running', end: null, doing: { kind: 'works', attempt: 1, until: null } });
    expect(why.doing?.words).toMatch(/^the sample of step 0 since 2\S+Z$/);
    expect(why.chain[0]?.words).toMatch(/^step 0 is sampled since 2\S+Z, and not closed$/);
    expect(why.advice).toEqual(['Nothing: it works. `pawl events` shows it live, `pawl cancel` ends it.']);
    stop.release();
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
  });

  test('how long it rests and after what; operators find it in the engine, too', async () => {
    let asked = 0;
    talk.on('limited', () => {
      asked += 1;
      return asked === 1 ? status(429, { error: { message: 'slow down' } }, { 'retry-after': '600' }) : say('Done.');
    });
    const { session } = await at.submit('limited');
    await untilResting(at, `${session}/1`);
    const why = await ask(session);
    expect(why.doing).toMatchObject({ kind: 'rests', until: expect.any(String), since: expect.any(String) });
    expect(why.doing?.words).toBe(`rests at step 0 until ${why.doing?.until} after rate_limited, then tries again`);
    const described = await turnHandle(at, `${session}/1`).describe();
    expect(described.searchAttributes).toMatchObject({ PawlSession: [session], PawlWaitingFor: ['rest:rate_limited'] });
    await cancelTurn(at, `${session}/1`, 'ann');
    expect(await closedStatus(at, turnWorkflowId(`${session}/1`))).toBe('CANCELLED');
    const closed = await turnHandle(at, `${session}/1`).describe();
    // What it waited for is gone with the wait.
    expect(closed.searchAttributes).not.toHaveProperty('PawlWaitingFor');
    expect(closed.searchAttributes).toMatchObject({
      PawlEndReason: ['ABORTED'],
      PawlEndDetail: ['user_cancel'],
      PawlDecidedBy: ['user'],
    });
  });

  test('whom it waits for, and how to answer', async () => {
    talk.on('asks', (request) =>
      countToolResults(request) === 0
        ? callTools([{ name: 'ask_user', arguments: { question: MARKER } }])
        : say('Thanks.'),
    );
    const { session } = await at.submit('asks');
    const why = await until('it waits', async () => {
      const seen = await ask(session);
      return seen.doing?.kind === 'waits' ? seen : null;
    });
    const [wait] = why.waitsFor;
    expect(wait).toMatchObject({ for: 'input', tool: 'ask_user' });
    expect(why.doing?.words).toBe(`waits for the answer to ask_user, ${wait?.id} until ${why.doing?.until}`);
    expect(why.advice).toEqual([
      `Answer its question until ${wait?.until}: \`pawl reject ${wait?.id} -m "…"\`.`,
      'It goes on with the answer.',
    ]);
    expect(JSON.stringify(why)).not.toContain(MARKER);
    expect((await turnHandle(at, `${session}/1`).describe()).searchAttributes).toMatchObject({
      PawlWaitingFor: ['input'],
    });
    await runs.answer('default', wait!.id, { answer: 'message', by: 'ann', text: 'Blue.' });
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
  });
});

describe('over HTTP', () => {
  test('a turn by session and number, a job by its id, as the document says', async () => {
    talk.on('over http', () => say('Done.'));
    const { session, job } = await at.submit('over http');
    await at.ended(session);
    const app = createApp(runs);
    for (const path of [`/v1/turns/${session}/1/why`, `/v1/jobs/${job}/why`]) {
      const answer = await app.request(path);
      expect(answer.status).toBe(200);
      expect(WhySchema.parse(await answer.json())).toMatchObject({
        turn: `${session}/1`,
        advice: ['Nothing: read the answer.'],
      });
    }
    for (const path of [`/v1/turns/${session}/2/why`, '/v1/turns/ses_1/x%00/why', `/v1/jobs/${session}/why`]) {
      expect((await app.request(path)).status, path).toBe(404);
    }
    expect(await runs.why('other', session)).toBeNull();
  });
});
