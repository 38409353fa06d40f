import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { turn } from '../../activities/store/schema.ts';
import { createRuns, type Runs } from '../../client/index.ts';
import { callTools, hold, paced, say } from '../../testing/index.ts';
import { goalWorkflowId, look } from '../../workflows/messages.ts';
import { newestUserText } from '../support/conversations.ts';
import { cancelTurn, closedStatus } from '../support/engine-facts.ts';
import { complete, counting, goalPlays, type Plays } from '../support/goal-plays.ts';
import {
  directives,
  foundOf,
  goalIs,
  liveState,
  movesOf,
  roundsOf,
  type TestGoal,
  beginGoal,
  verdict,
  vote,
  wakesOf,
  type GoalWishes,
} from '../support/goals.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

const plays = goalPlays();
let at: TestHouse;
let runs: Runs;
/** Cancelled by the engine's own tools before any worker knew of it. */
let early: TestGoal;
beforeAll(async () => {
  const others = [{ name: 'waiter', tools: ['list_files', 'wait_for'] }];
  at = await testHouse({ rules: plays.rules, worker: false, others });
  early = await beginGoal(at, 'GOAL early. Do it well.');
  await at.house.temporal.workflow.getHandle(goalWorkflowId(early.id)).cancel();
  await at.startWorker();
  const { database, temporal, taskQueue, catalogue, listener } = at.house;
  runs = createRuns({ database, temporal, taskQueue, catalogue, listener, engineLimitMs: 30_000 });
});
afterAll(async () => {
  await at.close();
});

const begin = (name: string, own: Plays, wishes: GoalWishes = {}) => plays.begin(at, name, own, wishes);
const TENANT = 'default';
const order = async (goal: string, kind: 'pause' | 'resume' | 'cancel', id?: string) =>
  await runs.orderGoal(TENANT, goal, { kind, by: 'somebody', why: 'for a reason', id });

describe.concurrent('a goal', () => {
  it('is worked on in rounds until judge, sceptic and gate agree', async () => {
    let judged = 0;
    const seen: number[] = [];
    const made = await begin('until agreed', {
      agent: (request) => {
        seen.push(directives(request).length);
        return counting(request);
      },
      judge: () =>
        ++judged === 1
          ? verdict('continue', { gap: 'a part is missing', next_step: 'Do part two.' })
          : verdict('candidate_complete'),
      sceptic: () => vote('approve'),
    });
    const row = await goalIs(at, made.id, 'complete');
    expect(await movesOf(at, made)).toEqual(['active by created', 'complete by sceptics']);
    expect(await foundOf(at, made)).toEqual(['judge continue', 'judge candidate_complete', 'sceptic approve']);
    expect([row.state.spent.turns, row.state.spent.tokens]).toEqual([2, 5 * 110]);
    const rounds = await roundsOf(at, made.id);
    expect(rounds.map(({ round, status: how, kind }) => [round, how, kind])).toEqual([
      [1, 'consumed', 'directive'],
      [2, 'consumed', 'directive'],
    ]);
    expect(rounds[1]?.body).toContain('Missing: a part is missing');
    expect(rounds[1]?.body).toContain('Do part two.');
    expect(rounds[1]?.limits.maxTokens).toBe(100_000 - 2 * 110);
    // Only the newest directive stays in the context.
    expect(seen).toEqual([1, 1]);
    expect(await closedStatus(at, goalWorkflowId(made.id))).toBe('COMPLETED');
  });

  it('stops at its budget, and goes on when that is raised', async () => {
    const made = await begin(
      'budget',
      {
        agent: counting,
        judge: (request) => verdict('continue', { gap: `gap ${'x'.repeat(newestUserText(request).length % 97)}` }),
      },
      { budget: { turns: 1 } },
    );
    await goalIs(at, made.id, 'budget_limited(turns)');
    expect((await roundsOf(at, made.id)).length).toBe(1);
    plays.set('budget', { ...complete, agent: counting });
    expect(await runs.orderGoal(TENANT, made.id, { kind: 'edit', by: 'a', budget: { turns: 2 } })).toEqual({
      kind: 'done',
      status: 'active',
    });
    await goalIs(at, made.id, 'complete');
    expect((await roundsOf(at, made.id)).length).toBe(2);
  });

  it('gives a round no more than is left, and a turn that reaches it ends there', async () => {
    const made = await begin(
      'narrow',
      {
        agent: (request) =>
          request.messages.at(-1)?.role === 'tool' ? say('No.') : callTools([{ name: 'list_files', arguments: {} }]),
      },
      { budget: { tokens: 110 } },
    );
    await goalIs(at, made.id, 'budget_limited(tokens)');
    const ended = await at.ended(made.session);
    expect([ended.endReason, ended.endDetail]).toEqual(['ABORTED', 'budget']);
    expect(ended.endSignal).toMatchObject({ limit: 'tokens', allowed: 110, used: 110 });
  });
});

describe.concurrent('commands', () => {
  it('pause lets the round end, resume goes on; the same id is answered the same', async () => {
    const stop = hold();
    const made = await begin('paused', {
      ...complete,
      agent: (request) =>
        directives(request)[0]?.includes('round 1 ') ? paced(say('One.'), { hold: stop }) : say('Two.'),
    });
    await stop.reached;
    expect(await order(made.id, 'pause', 'p1')).toEqual({ kind: 'done', status: 'paused(user)' });
    stop.release();
    await at.ended(made.session);
    await until('the end is counted', async () => (await liveState(at, made.id)).seenTurn?.n === 1);
    expect((await goalIs(at, made.id, 'paused(user)')).state.rounds).toBe(1);
    expect(await order(made.id, 'resume', 'r1')).toEqual({ kind: 'done', status: 'active' });
    await goalIs(at, made.id, 'complete');
    expect(await order(made.id, 'pause', 'p1')).toEqual({ kind: 'done', status: 'paused(user)' });
    expect(await order(made.id, 'pause', 'p2')).toEqual({ kind: 'final', status: 'complete' });
    expect(await order(made.id, 'resume', 'p1')).toEqual({ kind: 'conflict' });
    expect(await movesOf(at, made)).toEqual([
      'active by created',
      'paused(user) by command',
      'active by command',
      'complete by sceptics',
    ]);
  });

  it('cancel ends the round that runs, and says who and why', async () => {
    const stop = hold();
    const made = await begin('cancelled', { agent: () => paced(say('One two three.'), { hold: stop, holdAt: 2 }) });
    await stop.reached;
    expect(await order(made.id, 'cancel')).toEqual({ kind: 'done', status: 'cancelled' });
    expect(await at.ended(made.session)).toMatchObject({
      endDetail: 'user_cancel',
      endBy: 'somebody',
      endWhy: 'for a reason',
    });
    await goalIs(at, made.id, 'cancelled');
    expect(await closedStatus(at, goalWorkflowId(made.id))).toBe('COMPLETED');
    // A goal that is over may still be sent wakes: each is kept with the reason.
    await runs.wakeGoal(TENANT, made.id, { id: 'late', by: 'ci' });
    await until('the late wake is recorded', async () => (await wakesOf(at, made.id))[0]?.outcome === 'recorded');
    expect((await wakesOf(at, made.id)).map(({ why }) => why)).toEqual(['cancelled']);
    expect((await roundsOf(at, made.id)).length).toBe(1);
  });

  it('an edited objective is in the next directive, and only there', async () => {
    const stop = hold();
    let judged = 0;
    const made = await begin('edited', {
      agent: (request) =>
        directives(request)[0]?.includes('round 1 ') ? paced(say('One.'), { hold: stop }) : say('Two.'),
      judge: () => (++judged === 1 ? verdict('continue', { gap: 'more' }) : verdict('candidate_complete')),
      sceptic: () => vote('approve'),
    });
    await stop.reached;
    await runs.orderGoal(TENANT, made.id, {
      kind: 'edit',
      by: 'a',
      objective: 'GOAL edited. Now do </objective> it better.',
    });
    stop.release();
    const row = await goalIs(at, made.id, 'complete');
    expect(row.version).toBe(2);
    const bodies = (await roundsOf(at, made.id)).map(({ body }) => body);
    expect(bodies[0]).toContain('Do it well.');
    expect(bodies[1]).toContain('Now do <\\/objective> it better.');
    expect(bodies[1]?.match(/<\/objective>/g)).toHaveLength(1);
  });

  // Trap: what comes before the goal's state is there was not heard.
  it('the engine’s own cancel counts as one, also before the goal has begun', async () => {
    await goalIs(at, early.id, 'cancelled');
    expect(await roundsOf(at, early.id)).toEqual([]);
    expect(await closedStatus(at, goalWorkflowId(early.id))).toBe('COMPLETED');
  });

  it('cancel after a pause ends the round that the pause let run', async () => {
    const stop = hold();
    const made = await begin('paused first', { agent: () => paced(say('One two three.'), { hold: stop, holdAt: 2 }) });
    await stop.reached;
    expect(await order(made.id, 'pause')).toEqual({ kind: 'done', status: 'paused(user)' });
    expect(await order(made.id, 'cancel')).toEqual({ kind: 'done', status: 'cancelled' });
    expect(await at.ended(made.session)).toMatchObject({ endDetail: 'user_cancel', endBy: 'somebody' });
    await goalIs(at, made.id, 'cancelled');
  });

  it('a person who cancels the round pauses the goal', async () => {
    const stop = hold();
    const made = await begin('person', { agent: () => paced(say('One two three.'), { hold: stop, holdAt: 2 }) });
    await stop.reached;
    await cancelTurn(at, `${made.session}/1`, 'somebody');
    await goalIs(at, made.id, 'paused(user)');
    expect(await movesOf(at, made)).toEqual(['active by created', 'paused(user) by turn_end']);
    await order(made.id, 'cancel');
  });
});

describe.concurrent('wakes', () => {
  it('the model waits for an event by its name; only that one, or its time, wakes it', async () => {
    const made = await begin('waits', {
      ...complete,
      agent: (request) => {
        if (!directives(request)[0]?.includes('round 1 ')) return say('It came.');
        return request.messages.at(-1)?.role === 'tool'
          ? say('I wait.')
          : callTools([{ name: 'update_goal', arguments: { status: 'waiting', note: 'for CI', event: 'CI is done' } }]);
      },
    });
    await goalIs(at, made.id, 'waiting(event)');
    await runs.wakeGoal(TENANT, made.id, { id: 'other', event: 'deployed', by: 'ci' });
    await until('the other event is recorded', async () => (await wakesOf(at, made.id))[0]?.outcome === 'recorded');
    expect((await liveState(at, made.id)).status.kind).toBe('waiting');
    await runs.wakeGoal(TENANT, made.id, { id: 'ci', event: 'CI is done', by: 'ci' });
    await goalIs(at, made.id, 'complete');
    expect((await wakesOf(at, made.id)).map(({ key, outcome, why }) => [key, outcome, why])).toEqual([
      ['other', 'recorded', 'another_event'],
      ['ci', 'fired', 'waiting(event)'],
    ]);
  });
});

it('an event that is reported to the session wakes the goal that waits for it, and is in its directive', async () => {
  const seen: string[] = [];
  const made = await begin('reported', {
    ...complete,
    agent: (request) => {
      const [directive = ''] = directives(request);
      if (!directive.includes('round 1 ')) {
        seen.push(directive);
        return say('It came.');
      }
      return request.messages.at(-1)?.role === 'tool'
        ? say('I wait.')
        : callTools([{ name: 'update_goal', arguments: { status: 'waiting', note: 'for CI', event: 'CI is done' } }]);
    },
  });
  await goalIs(at, made.id, 'waiting(event)');
  const report = (name: string, id: string) =>
    runs.report(TENANT, made.session, { name, id, text: `${name}: </event> 3 of 3`, by: 'ci' });
  expect(await report('deployed', 'd1')).toEqual({ id: 'd1', isNew: true, waits: 0, goal: made.id });
  expect(await report('CI is done', 'ci1')).toMatchObject({ isNew: true, goal: made.id });
  expect(await report('CI is done', 'ci1')).toMatchObject({ isNew: false, goal: null });
  await goalIs(at, made.id, 'complete');
  expect(
    (await wakesOf(at, made.id)).map(({ key, source, by, outcome, why }) => [key, source, by, outcome, why]),
  ).toEqual([
    ['event/d1', 'event', 'ci', 'recorded', 'another_event'],
    ['event/ci1', 'event', 'ci', 'fired', 'waiting(event)'],
  ]);
  expect(seen.map((text) => /<event>[^]*<\/event>/.exec(text)?.[0])).toEqual([
    '<event>\nCI is done\nCI is done: <\\/event> 3 of 3\n</event>',
  ]);
});

it('an event that a call of its round has taken does not end the wait for the next one', async () => {
  const stop = hold();
  const play: Plays = {
    agent: (request) => {
      const done = request.messages.filter(({ role }) => role === 'tool').length;
      if (done === 0) return paced(callTools([{ name: 'list_files', arguments: {} }]), { hold: stop });
      if (done === 1) return callTools([{ name: 'wait_for', arguments: { event: 'a build' } }]);
      const claim = { status: 'waiting', note: 'for the next', event: 'a build' };
      return done === 2 ? callTools([{ name: 'update_goal', arguments: claim }]) : say('I wait.');
    },
  };
  const made = await begin('taken', play, { agent: 'waiter' });
  await stop.reached;
  await runs.report(TENANT, made.session, { name: 'a build', id: 'b1', text: 'green', by: 'ci' });
  await until('the goal has heard of it', async () => (await liveState(at, made.id)).pendingWakes.length === 1);
  stop.release();
  await goalIs(at, made.id, 'waiting(event)');
  expect((await wakesOf(at, made.id)).map(({ key, outcome, why }) => [key, outcome, why])).toEqual([
    ['event/b1', 'superseded', 'taken_by_call'],
  ]);
  expect(await movesOf(at, made)).toEqual(['active by created', 'waiting(event) by claim']);
  await order(made.id, 'cancel');
});

it('a job with a goal is done when the goal is, and its turns are the goal’s', async () => {
  let judged = 0;
  plays.set('of a job', {
    ...complete,
    agent: counting,
    judge: () => (++judged === 1 ? verdict('continue', { gap: 'more' }) : verdict('candidate_complete')),
  });
  const submitted = await runs.submit({ tenant: TENANT, key: 'goal-job', text: 'GOAL of a job. Do it.', goal: {} });
  if (submitted.kind !== 'accepted') throw new Error(submitted.kind);
  const following = runs.events(TENANT, submitted.job, {});
  let step = await following.next();
  while (!step.done) step = await following.next();
  expect(step.value).toMatchObject({ state: 'done', turn: `${submitted.session}/2`, goal: { status: 'complete' } });
  expect((await goalIs(at, `goal_${submitted.job.slice(4)}`, 'complete')).state.spent.turns).toBe(2);
  const shown = await runs.show(TENANT, submitted.job);
  expect(shown?.turns.map(({ n }) => n)).toEqual([1, 2]);
});

it('a cancelled job takes its goal and its turn with it', async () => {
  const stop = hold();
  plays.set('of a cancelled job', { agent: () => paced(say('One two three.'), { hold: stop, holdAt: 2 }) });
  const text = 'GOAL of a cancelled job. Do it.';
  const submitted = await runs.submit({ tenant: TENANT, key: 'cancelled-job', text, goal: {} });
  if (submitted.kind !== 'accepted') throw new Error(submitted.kind);
  await stop.reached;
  const asked = { by: 'somebody', why: 'for a reason', id: 'c' };
  expect(await runs.cancel(TENANT, submitted.job, asked)).toBe('took_request');
  expect(await at.ended(submitted.session)).toMatchObject({ endDetail: 'user_cancel', endBy: 'somebody' });
  const job = await until('the job is done', async () => {
    const found = await runs.get(TENANT, submitted.job);
    return found?.state === 'done' ? found : null;
  });
  expect(job.goal?.status).toBe('cancelled');
  expect(await runs.cancel(TENANT, submitted.job, asked)).toBe('took_request');
});

it('a goal continues as new, and nothing of it is lost', async () => {
  const made = await begin('long history', {
    agent: (request) =>
      request.messages.at(-1)?.role === 'tool'
        ? say('I wait.')
        : callTools([{ name: 'update_goal', arguments: { status: 'waiting', note: 'x', event: 'tick' } }]),
  });
  await goalIs(at, made.id, 'waiting(event)');
  const handle = at.house.temporal.workflow.getHandle(goalWorkflowId(made.id));
  const { runId } = await handle.describe();
  await until(
    'a new run has taken over',
    async () => {
      await Promise.all(Array.from({ length: 60 }, () => handle.signal(look)));
      return (await handle.describe()).runId !== runId;
    },
    60_000,
  );
  const state = await liveState(at, made.id);
  expect([state.status.kind, state.rounds, state.seenTurn?.n]).toEqual(['waiting', 1, 1]);
  expect(await order(made.id, 'cancel')).toEqual({ kind: 'done', status: 'cancelled' });
});

it('200 wakes, each delivered twice at once: none is doubled, none is lost', { timeout: 90_000 }, async () => {
  const made = await begin('many wakes', {
    agent: (request) =>
      request.messages.at(-1)?.role === 'tool'
        ? say(`I wait ${request.messages.length}.`)
        : callTools([{ name: 'update_goal', arguments: { status: 'waiting', note: 'more', event: 'tick' } }]),
  });
  await goalIs(at, made.id, 'waiting(event)');
  const ids = Array.from({ length: 200 }, (_, n) => `w${n}`);
  const deliver = (id: string) => runs.wakeGoal(TENANT, made.id, { id, event: 'tick', by: 'ci' });
  const answers: Awaited<ReturnType<typeof deliver>>[] = [];
  for (let n = 0; n < ids.length; n += 10) {
    const some = ids.slice(n, n + 10);
    answers.push(...(await Promise.all([...some, ...some].map(deliver))));
  }
  expect(answers.filter((answer) => answer !== null && answer !== 'recurring' && answer.isNew).length).toBe(200);
  await order(made.id, 'cancel');
  const wakes = await until('each wake has its outcome', async () => {
    const rows = await wakesOf(at, made.id);
    return rows.every(({ outcome }) => outcome !== null) ? rows : null;
  });
  expect(wakes.map(({ key }) => key).toSorted()).toEqual(ids.toSorted());
  const told = (await at.events(made.session)).flatMap(({ event }) => (event.kind === 'goal.wake' ? [event.wake] : []));
  expect(told.toSorted()).toEqual(wakes.map(({ id }) => id).toSorted());
  // Each that fired made it active once; what another stood for came before that one was settled.
  const fired = wakes.filter(({ outcome }) => outcome === 'fired');
  const actives = (await movesOf(at, made)).filter((move) => move.startsWith('active'));
  expect(actives).toEqual(['active by created', ...Array<string>(fired.length).fill('active by wake')]);
  for (const { outcome, why, createdAt } of wakes) {
    if (outcome === 'superseded') {
      const other = wakes.find(({ id }) => id === why);
      expect(other?.settledAt?.getTime()).toBeGreaterThanOrEqual(createdAt.getTime());
      expect(other?.outcome).not.toBe('superseded');
    } else
      expect([`${outcome}: ${why}`]).toContain(outcome === 'fired' ? 'fired: waiting(event)' : 'recorded: cancelled');
  }
  // One round for each time that it was active; the cancel may have come before the last one began.
  const rounds = await roundsOf(at, made.id);
  expect([actives.length - 1, actives.length]).toContain(rounds.length);
  expect(rounds.map(({ round }) => round)).toEqual(rounds.map((_, n) => n + 1));
  const consumed = rounds.filter(({ status: how }) => how === 'consumed').length;
  expect(await at.house.database.db.$count(turn, eq(turn.session, made.session))).toBe(consumed);
  expect(consumed).toBeGreaterThanOrEqual(rounds.length - 1);
});
