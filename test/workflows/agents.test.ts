import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { input, subAgent } from '../../activities/store/schema.ts';
import { createRuns, type Runs } from '../../client/index.ts';
import { callTools, type ChatRequest, countToolResults, hold, paced, say, status } from '../../testing/index.ts';
import { agentSessionId } from '../../workflows/core/agents.ts';
import { callsOf } from '../../workflows/core/turn-state.ts';
import { turnState } from '../../workflows/messages.ts';
import { conversations, newestUserText } from '../support/conversations.ts';
import { cancelTurn, only, turnHandle } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

const talk = conversations();
let at: TestHouse;
let runs: Runs;
beforeAll(async () => {
  at = await testHouse({
    rules: talk.rules,
    agent: { tools: ['list_files'], agents: ['tester', 'small'], limits: { maxTokens: 100_000 } },
    others: [
      { name: 'small', tools: [], agents: [], limits: { maxTokens: 20_000 } },
      { name: 'poor', agents: ['small'], limits: { maxTokens: 1_000 } },
    ],
  });
  runs = createRuns(at.house);
});
afterAll(async () => {
  await at.close();
});

const spawn = (prompt: string, more: Readonly<Record<string, unknown>> = {}) => ({
  name: 'spawn_agent',
  arguments: { agent: 'small', prompt, ...more },
});
const wait = (args: Readonly<Record<string, unknown>> = {}) => ({ name: 'wait_agents', arguments: args });

/** The model's steps in order, by how many results it has. */
const inSteps =
  (...steps: readonly ((request: ChatRequest) => ReturnType<typeof say>)[]) =>
  (request: ChatRequest) =>
    (steps[Math.min(countToolResults(request), steps.length - 1)] as (typeof steps)[number])(request);

async function results(session: string): Promise<string[]> {
  return (await at.transcript(session)).flatMap((each) => (each.kind === 'tool_result' ? [each.text] : []));
}

async function agentsOf(session: string) {
  return await at.house.database.db.select().from(subAgent).where(eq(subAgent.parent, session)).orderBy(subAgent.n);
}

async function begun(session: string, count = 1): Promise<void> {
  await until('sub-agents sample', async () => {
    const started = only(await at.events(session), 'agent.started').map(({ agent }) => agent);
    const all = await at.events(session);
    return started.filter((agent) => only(all, 'sample.started', `${agent}/1`).length > 0).length >= count;
  });
}

const stateOf = (session: string) => turnHandle(at, `${session}/1`).query(turnState);

const told = (agent: string, text: string) =>
  `Sub-agent ${agent} (small) ended COMPLETED/final_answer, decided by model. It used 110 tokens. All that follows is what it said last:\n${text}`;

describe.concurrent('a sub-agent', () => {
  it('in the foreground: its last words and its end are the result of the call, its cost is in the turn’s', async () => {
    talk.on('look into it', () => say('All is well.'));
    talk.on(
      'lead',
      inSteps(
        () => callTools([spawn('look into it')]),
        () => say('It says that all is well.'),
      ),
    );
    const { session, job } = await at.submit('lead');
    expect(await at.ended(session)).toMatchObject({
      endReason: 'COMPLETED',
      endUsage: { inputTokens: 300, outputTokens: 30 },
    });
    const child = agentSessionId(session, 1);
    expect(await results(session)).toEqual([told(child, 'All is well.')]);
    const events = await at.events(session);
    expect(only(events, 'agent.started')).toMatchObject([{ agent: child, name: 'small', mode: 'foreground' }]);
    expect(only(events, 'agent.ended')).toMatchObject([{ agent: child, reason: 'COMPLETED', decidedBy: 'model' }]);
    const costs = await runs.cost('default', job);
    expect(costs).toMatchObject({ requests: 3, inputTokens: 300, outputTokens: 30 });
    expect(await runs.cost('default', session)).toEqual(costs);
    expect(await runs.cost('default', child)).toMatchObject({ requests: 1 });
    const shown = await runs.show('default', job);
    expect(shown?.turns.map(({ id }) => id)).toEqual([`${session}/1`]);
    expect(shown?.agents).toMatchObject([
      { agent: child, startedBy: `${session}/1`, end: { reason: 'COMPLETED', usage: { inputTokens: 100 } } },
    ]);
    expect((await runs.why('default', child))?.turn).toBe(`${child}/1`);
    expect((await runs.why('default', `${session}/1`))?.agents.map(({ agent }) => agent)).toEqual([child]);
    expect((await runs.get('default', job))?.turn).toBe(`${session}/1`);
  });

  it('that fails is a result that says how; the turn goes on', async () => {
    talk.on('fail', () => status(400, { error: { message: 'no', type: 'invalid_request_error' } }));
    talk.on(
      'lead a failing one',
      inSteps(
        () => callTools([spawn('fail')]),
        () => say('It failed.'),
      ),
    );
    const { session } = await at.submit('lead a failing one');
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED', endDetail: 'final_answer' });
    const [text] = await results(session);
    expect(text).toMatch(
      /^Sub-agent \S+ \(small\) ended ERROR\/invalid_request, decided by runtime\. It used 0 tokens\./,
    );
  });

  it('that a person cancels is a result, and does not touch the one that started it', async () => {
    const stop = hold();
    talk.on('be cancelled', () => paced(say('One two three.'), { hold: stop, holdAt: 2 }));
    talk.on(
      'lead a cancelled one',
      inSteps(
        () => callTools([spawn('be cancelled')]),
        () => say('It was cancelled.'),
      ),
    );
    const { session } = await at.submit('lead a cancelled one');
    await stop.reached;
    const child = agentSessionId(session, 1);
    expect(await runs.cancel('default', child, { by: 'pat', why: 'enough' })).toBe('took_request');
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
    expect((await results(session))[0]).toMatch(/ended ABORTED\/user_cancel, decided by user \(pat\)\./);
    expect(await runs.cancel('default', child, { by: 'pat' })).toBe('already_ended');
    expect(await runs.cancel('other', child, { by: 'pat' })).toBeNull();
  });

  // Trap: a dozen such looks would be taken for a loop, and end the turn while its sub-agent works.
  it('that works on when the time of a wait is over: the wait says so, and counts as no repetition', async () => {
    const stop = hold();
    talk.on('take its time', () => paced(say('At last.'), { hold: stop }));
    talk.on(
      'lead and look in',
      inSteps(
        () => callTools([spawn('take its time', { background: true })]),
        () => callTools([wait({ seconds: 1 })]),
        () => say('It works still.'),
      ),
    );
    const { session } = await at.submit('lead and look in');
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
    expect((await results(session))[1]).toBe(
      `The time is over.\n\nStill running: ${agentSessionId(session, 1)} (small).`,
    );
    expect((await stateOf(session)).repeats).toEqual({ batch: null, tier: 'others', times: 0 });
    stop.release();
  });

  it('in the background: its id at once, and wait_agents tells its end, which is no message any more', async () => {
    const stop = hold();
    talk.on('take a while', () => paced(say('Slowly done.'), { hold: stop }));
    talk.on(
      'lead in the background',
      inSteps(
        () => callTools([spawn('take a while', { background: true })]),
        () => {
          setTimeout(stop.release, 300);
          return callTools([wait()]);
        },
        () => callTools([wait()]),
        () => say('Both are done.'),
      ),
    );
    const { session } = await at.submit('lead in the background');
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED', endUsage: { inputTokens: 500 } });
    const child = agentSessionId(session, 1);
    const [first, second, third] = await results(session);
    expect(first).toMatch(
      new RegExp(`^Sub-agent ${child} \\(small\\) works in the background\\. It may use 20000 tokens`),
    );
    expect(second).toBe(told(child, 'Slowly done.'));
    expect(third).toBe('You have no sub-agent in the background that is left.');
    expect((await at.transcript(session)).filter(({ kind }) => kind === 'user')).toHaveLength(1);
    const [row] = await at.house.database.db
      .select()
      .from(input)
      .where(eq(input.id, `agent_end/${child}`));
    expect(row).toMatchObject({ status: 'consumed', message: null });
  });

  it('in the background outlives its turn, and its end starts the next one', async () => {
    const stop = hold();
    talk.on('outlive', () => paced(say('Late, but done.'), { hold: stop }));
    talk.on('lead and leave', (request) => {
      if (newestUserText(request).startsWith('Sub-agent')) return say('Thank you.');
      return countToolResults(request) === 0
        ? callTools([spawn('outlive', { background: true })])
        : say('I leave it running.');
    });
    const { session, job } = await at.submit('lead and leave');
    await at.ended(session);
    expect((await agentsOf(session)).map(({ endedAt }) => endedAt)).toEqual([null]);
    stop.release();
    expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED' });
    const child = agentSessionId(session, 1);
    const users = (await at.transcript(session)).flatMap((each) => (each.kind === 'user' ? [each.text] : []));
    expect(users).toEqual(['lead and leave', told(child, 'Late, but done.')]);
    // It goes on with the job whose work the sub-agent was.
    expect(await runs.cost('default', job)).toMatchObject({ requests: 4 });
  });

  it('in the background is told to the turn that runs, where nothing waits for it', async () => {
    const [slow, quick] = [hold(), hold()];
    talk.on('end meanwhile', () => paced(say('Done meanwhile.'), { hold: quick }));
    talk.on('lead on', (request) => {
      if (newestUserText(request).startsWith('Sub-agent')) return say('I have heard.');
      return countToolResults(request) === 0
        ? callTools([spawn('end meanwhile', { background: true })])
        : paced(say('I go on.'), { hold: slow });
    });
    const { session } = await at.submit('lead on');
    await slow.reached;
    quick.release();
    await until('the turn has it', async () => {
      const { inbox } = await stateOf(session);
      return inbox.length > 0;
    });
    slow.release();
    await at.ended(session);
    expect((await at.transcript(session)).map(({ kind }) => kind)).toEqual([
      'user',
      'assistant',
      'tool_result',
      'assistant',
      'user',
      'assistant',
    ]);
  });

  it('a message cuts the wait for those in the background short, and leaves those in the foreground alone', async () => {
    const [back, front] = [hold(), hold()];
    talk.on('behind', () => paced(say('Behind.'), { hold: back }));
    talk.on('before', () => paced(say('Before.'), { hold: front }));
    talk.on('lead both', (request) => {
      const n = countToolResults(request);
      if (n === 0) return callTools([spawn('behind', { background: true })]);
      if (n === 1) return callTools([spawn('before')]);
      if (n === 2) return callTools([wait({ for: 'all' })]);
      return say('I have read it.');
    });
    const { session } = await at.submit('lead both');
    await front.reached;
    await at.send(session, 'steer', 'How is it?');
    await until('the turn has the message', async () => (await stateOf(session)).inbox.length > 0);
    front.release();
    await until('the turn waits for those in the background', async () =>
      callsOf((await stateOf(session)).phase).some(
        (call) => 'approval' in call && call.approval === `${session}/agents`,
      ),
    );
    await at.send(session, 'steer', 'Never mind.');
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
    expect((await results(session)).slice(1)).toEqual([
      told(agentSessionId(session, 2), 'Before.'),
      'The wait was interrupted by a message, which follows.',
    ]);
    back.release();
  });

  it('of two that ask for more than there is, one gets it and the other is refused with the numbers', async () => {
    talk.on('half a', () => say('A.'));
    talk.on(
      'lead poor',
      inSteps(
        () => callTools([spawn('half a', { maxTokens: 600 }), spawn('half a', { maxTokens: 600 })]),
        () => say('One was refused.'),
      ),
    );
    const { session } = await at.submit('lead poor', { agent: 'poor' });
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
    const texts = (await results(session)).toSorted();
    expect(texts[0]).toBe(
      'Not started: 190 tokens of the 600 tokens that you ask for can be given away. What runs holds its part until it ends; something is kept for your own last words.',
    );
    expect(texts[1]).toMatch(/^Sub-agent/);
    expect(await agentsOf(session)).toMatchObject([{ leaseTokens: 600, chargedTokens: 110 }]);
  });

  it('ends on its lease, and what it spent counts against the turn that gave it', async () => {
    talk.on('spend', () => callTools([{ name: 'list_files', arguments: {} }]));
    talk.on(
      'lead spending',
      inSteps(
        () => callTools([{ name: 'spawn_agent', arguments: { agent: 'tester', prompt: 'spend', maxTokens: 250 } }]),
        () => say('It ran out.'),
      ),
    );
    const { session } = await at.submit('lead spending');
    await at.ended(session);
    expect((await results(session))[0]).toMatch(/ended ABORTED\/budget, decided by runtime\. It used 330 tokens/);
    expect(await agentsOf(session)).toMatchObject([{ leaseTokens: 250, chargedTokens: 330 }]);
  });

  it('nine at once are one too many, and what is three deep can’t go deeper', async () => {
    const stop = hold();
    talk.on('hold on', () => paced(say('Held.'), { hold: stop }));
    talk.on('too many', (request) => {
      if (countToolResults(request) > 0) return say('Eight of them.');
      return callTools(Array.from({ length: 9 }, () => spawn('hold on', { maxTokens: 500 })));
    });
    const { session } = await at.submit('too many');
    await begun(session, 8);
    stop.release();
    await at.ended(session);
    const texts = await results(session);
    expect(texts.filter((text) => text === 'At most 8 sub-agents run at once: wait until one has ended.')).toHaveLength(
      1,
    );
    expect(texts.filter((text) => text.startsWith('Sub-agent'))).toHaveLength(8);
  });

  it('is not offered the tools at the last depth, and is refused if it calls them all the same', async () => {
    const offered: string[][] = [];
    for (const depth of [0, 1, 2, 3]) {
      talk.on(`depth ${depth}`, (request) => {
        if (countToolResults(request) > 0) return say(`Deep ${depth}.`);
        offered[depth] = (request.tools ?? [])
          .map((tool) => tool.function.name)
          .filter((name) => name.includes('agent'));
        return callTools([{ name: 'spawn_agent', arguments: { agent: 'tester', prompt: `depth ${depth + 1}` } }]);
      });
    }
    const { session } = await at.submit('depth 0');
    await at.ended(session);
    const both = ['spawn_agent', 'wait_agents'];
    expect(offered).toEqual([both, both, both, []]);
    const deepest = `${session}/agent/1/agent/1/agent/1`;
    expect(await results(deepest)).toEqual(['There is no tool named "spawn_agent". Your tools are: list_files.']);
    expect(await agentsOf(deepest)).toEqual([]);
    expect((await at.ended(session)).endUsage).toMatchObject({ inputTokens: 800, outputTokens: 80 });
  });

  it('a person stops the turn: what runs in the background is cancelled, and wakes nobody', async () => {
    const stop = hold();
    talk.on('be stopped', () => paced(say('Never.'), { hold: stop, holdAt: 1 }));
    talk.on(
      'lead and be stopped',
      inSteps(
        () => callTools([spawn('be stopped', { background: true })]),
        () => paced(say('I work on and on.'), { hold: hold(), holdAt: 1 }),
      ),
    );
    const { session } = await at.submit('lead and be stopped');
    await stop.reached;
    await until(
      'the turn goes on',
      async () => only(await at.events(session), 'sample.started', `${session}/1`).length > 1,
    );
    await cancelTurn(at, `${session}/1`, 'ann', 'no more');
    expect(await at.ended(session)).toMatchObject({ endReason: 'ABORTED', endDetail: 'user_cancel' });
    const child = agentSessionId(session, 1);
    expect(await at.ended(child)).toMatchObject({
      endReason: 'ABORTED',
      endDetail: 'parent_cancelled',
      endDecidedBy: 'user',
      endBy: 'ann',
      endWhy: 'no more',
    });
    await until('the session rests', async () => only(await at.events(session), 'driver.ended').length > 0);
    const [row] = await at.house.database.db
      .select()
      .from(input)
      .where(eq(input.id, `agent_end/${child}`));
    expect(row).toBeUndefined();
  });
});
