import { and, eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { directiveId, queueDirective } from '../../../activities/store/goal-direct.ts';
import { billOfGoal } from '../../../activities/store/goal-bill.ts';
import { eventHash, lookForGoal, untoldGoals } from '../../../activities/store/goal-look.ts';
import { recordFacts } from '../../../activities/store/goal-record.ts';
import { keepVerdict } from '../../../activities/store/goal-verdicts.ts';
import { storeGoalCommand } from '../../../activities/store/goal-commands.ts';
import { findGoal, storeGoal } from '../../../activities/store/goals.ts';
import { storeOutsideEvent } from '../../../activities/store/outside-events.ts';
import { overdueGoals } from '../../../activities/store/overdue-goals.ts';
import { storeWake, wakingEvents } from '../../../activities/store/wakes.ts';
import {
  call as calls,
  goal,
  input,
  outbox,
  session,
  subAgent,
  turn,
  usage,
  wake,
} from '../../../activities/store/schema.ts';
import { leftOf, UNSPENT } from '../../../workflows/core/goal/goal-limits.ts';
import type { GoalFact, GoalStatus } from '../../../workflows/core/goal/goal-state.ts';
import { DEFAULT_LIMITS, POLICY } from '../../../workflows/core/policy.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { CANCELLED, COMPLETED, end } from './ending.ts';
import { BUDGET, seedGoal as seedGoalIn } from './seed-goals.ts';
import { atOnce, id, journal, next, seedJob, seedTurn, send } from './seed.ts';

const LEFT = leftOf({ budget: BUDGET, ...UNSPENT });

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
});
afterAll(() => at.close());

const seedGoal = () => seedGoalIn(at.db);
const direct = (own: { goal: string; session: string }, round = 1, afterTurn = 0) =>
  queueDirective(at.db, { ...own, round, limits: LEFT, afterTurn, text: `round ${round}` });
const look = (own: { goal: string; session: string }, afterTurn = 0) =>
  lookForGoal(at.db, { ...own, afterTurn, sinceTurn: 0 });
/** A turn that has ended after one request and ten seconds. */
async function seedTurnOf(owner: string, spent: Partial<typeof usage.$inferInsert>) {
  const opened = await seedTurn(at.db, owner);
  const { turn } = opened;
  const request = { attempt: id('att'), sample: id('s'), session: owner, turn, step: 1, model: 'm' };
  const closed = { complete: true, closedAt: new Date(), outcome: 'reply', worstMicroUsd: 500 };
  await at.db.insert(usage).values({ ...request, outputCapTokens: 100, ...closed, ...spent });
  await end(at.db, opened, COMPLETED, { runningMs: 10_000 });
  return opened;
}

/** A sub-agent of a turn, which has been lent 400 tokens and 40 micro-USD. */
async function seedAgentOf(parent: { readonly session: string; readonly turn: string; readonly input: string }) {
  const asked = id('call');
  const call = { key: asked, turn: parent.turn, assistant: id('a'), ordinal: 0, step: 0, providerCallId: 'c' };
  const made = { tool: 'spawn_agent', effect: 'none', arguments: '{}', argumentsHash: 'h' } as const;
  await at.db.insert(calls).values({ ...call, ...made });
  const child = (await seedJob(at.db)).session;
  await at.db.insert(subAgent).values({
    session: child,
    parent: parent.session,
    n: 1,
    call: asked,
    turn: parent.turn,
    origin: parent.input,
    name: 'small',
    mode: 'background',
    leaseTokens: 400,
    leaseMicroUsd: 40,
  });
  return child;
}

const holdSession = (owner: string) => sql`select 1 from pawl.session where id = ${owner} for update`;

describe('a directive', () => {
  test('is queued once a round, however often and at once it is tried', async () => {
    const own = await seedGoal();
    const answers = await atOnce(
      at.db,
      holdSession(own.session),
      Array.from({ length: 6 }, () => () => direct(own)),
    );
    expect(answers).toEqual(Array(6).fill('queued'));
    expect(await at.db.$count(input, and(eq(input.session, own.session), eq(input.kind, 'directive')))).toBe(1);
    expect((await journal(at.db, own.session)).filter(({ kind }) => kind === 'input.accepted').length).toBe(1);
  });

  test('waits for a person, for a running turn, and for a directive before it', async () => {
    const own = await seedGoal();
    const prompt = await send(at.db, own.session, 'prompt');
    expect(await direct(own)).toBe('busy');
    const turn = await seedTurn(at.db, own.session);
    expect([turn.input, await direct(own)]).toEqual([prompt, 'busy']);
    await end(at.db, turn, COMPLETED);
    expect(await direct(own, 1, 1)).toBe('queued');
    expect(await direct(own, 2, 1)).toBe('busy');
  });

  // What that turn has spent is not in its limits.
  test('waits until the end before it is counted', async () => {
    const own = await seedGoal();
    await send(at.db, own.session, 'prompt');
    await end(at.db, await seedTurn(at.db, own.session), COMPLETED);
    expect([await direct(own, 1, 0), await direct(own, 1, 1)]).toEqual(['busy', 'queued']);
  });

  // Trap: an attempt that was thought lost comes when the goal has been told to rest.
  test('is not queued for a goal that rests', async () => {
    const own = await seedGoal();
    await at.db.update(goal).set({ status: 'paused(user)' }).where(eq(goal.id, own.goal));
    expect(await direct(own)).toBe('busy');
  });

  test('gives its turn less where a person goes before it', async () => {
    const own = await seedGoal();
    await direct(own);
    await send(at.db, own.session, 'prompt');
    const { turn } = await seedTurnOf(own.session, { inputTokens: 300, outputTokens: 100, costMicroUsd: 150 });
    expect(turn).toBe(`${own.session}/1`);
    const step = await next(at.db, own.session);
    if (step.kind !== 'start') throw new Error(step.kind);
    expect(step.turn.limits).toMatchObject({ maxTokens: 600, maxMicroUsd: 250, maxRunningMs: 50_000 });
  });

  test('is not queued into a session that is closed', async () => {
    const own = await seedGoal();
    await at.db.update(session).set({ state: 'archived' }).where(eq(session.id, own.session));
    expect(await direct(own)).toBe('closed');
  });

  test('gives its turn what is left of the budget, the tools of a goal, and no gate but the goal’s own', async () => {
    const own = await seedGoal();
    await direct(own);
    const step = await next(at.db, own.session);
    if (step.kind !== 'start') throw new Error(step.kind);
    expect(step.turn.limits).toEqual({ ...DEFAULT_LIMITS, maxTokens: 1_000, maxMicroUsd: 400, maxRunningMs: 60_000 });
    expect(step.turn.rules).toMatchObject({ goal: 'active', todoGate: 'off' });
  });
});

describe('a look', () => {
  test('brings ended turns after that number, and acknowledges the word', async () => {
    const own = await seedGoal();
    await direct(own);
    const turn = await seedTurn(at.db, own.session);
    await end(at.db, turn, COMPLETED, { runningMs: 1_234 });
    const told = () =>
      at.db
        .select()
        .from(outbox)
        .where(eq(outbox.receiver, `goal:${own.goal}`));
    expect((await told()).map(({ event, acknowledgedAt }) => [event, acknowledgedAt])).toEqual([
      [`ended/${turn.turn}`, null],
    ]);
    const found = await look(own);
    expect(found.turns).toMatchObject([
      { turn: turn.turn, n: 1, round: 1, runningMs: 1_234, acted: false, claimed: null },
    ]);
    expect((await look(own, 1)).turns).toEqual([]);
    expect((await told())[0]?.acknowledgedAt).not.toBeNull();
  });

  test('is asked for again by the sweeper where a wake got lost, not where the goal remembers it', async () => {
    const own = await seedGoal();
    const { id: woken } = await storeWake(at.db, { goal: own.goal, key: 'w', source: 'api', event: null, by: null });
    expect(await untoldGoals(at.db, 100)).not.toContain(own.goal);
    await at.db
      .update(wake)
      .set({ createdAt: new Date(0) })
      .where(eq(wake.id, woken));
    expect(await untoldGoals(at.db, 100)).toContain(own.goal);
    const { state } = (await findGoal(at.db, own.goal))!;
    const remembers = { ...state, pendingWakes: [{ id: woken, event: null, to: 'goal' } as const] };
    await at.db.update(goal).set({ state: remembers }).where(eq(goal.id, own.goal));
    expect(await untoldGoals(at.db, 100)).not.toContain(own.goal);
  });

  test('tells of a directive that somebody withdrew; the sweeper tells the goal', async () => {
    const own = await seedGoal();
    await direct(own);
    await at.db
      .update(input)
      .set({ status: 'withdrawn' })
      .where(eq(input.id, directiveId(own.goal, 1)));
    expect((await look(own)).withdrawn).toBe(1);
    expect(await untoldGoals(at.db, 100)).toContain(own.goal);
  });
});

// Nothing of a goal that rests or is due lies unheard: where its workflow was lost, nobody began it again.
describe('a goal that should have gone on', () => {
  const old = new Date(Date.now() - 2 * POLICY.recovery.goalOverdueMs);
  const ago = (ms: number) => Date.now() - ms;
  const [late, soon] = [ago(2 * POLICY.recovery.goalOverdueMs), ago(-1_000)];
  const overdue = async (own: { goal: string }) => (await overdueGoals(at.db, 100)).includes(own.goal);
  async function seedOld(status?: GoalStatus) {
    const own = await seedGoal();
    const { state } = (await findGoal(at.db, own.goal))!;
    const copied = status ? { state: { ...state, status } } : {};
    await at.db
      .update(goal)
      .set({ ...copied, changedAt: old })
      .where(eq(goal.id, own.goal));
    return own;
  }

  test.each<[boolean, GoalStatus]>([
    [true, { kind: 'waiting', awaited: { on: 'time', untilMs: late } }],
    [true, { kind: 'waiting', awaited: { on: 'event', event: 'e', untilMs: late } }],
    [true, { kind: 'paused', by: 'infrastructure', untilMs: late }],
    [true, { kind: 'paused', by: 'backoff', untilMs: late }],
    [true, { kind: 'active', doing: { kind: 'due', notBeforeMs: late } }],
    [false, { kind: 'waiting', awaited: { on: 'time', untilMs: soon } }],
    [false, { kind: 'waiting', awaited: { on: 'event', event: 'e', untilMs: null } }],
    [false, { kind: 'paused', by: 'infrastructure', untilMs: ago(1_000) }],
    [false, { kind: 'paused', by: 'user' }],
    [false, { kind: 'blocked', on: 'internal' }],
  ])('is asked for: %s, where it is %j', async (expected, status) => {
    expect(await overdue(await seedOld(status))).toBe(expected);
  });

  test('is not asked for while it has just moved, or a turn of its session runs or has just ended', async () => {
    expect(await overdue(await seedGoal())).toBe(false);
    const own = await seedOld();
    expect(await overdue(own)).toBe(true);
    await send(at.db, own.session, 'prompt');
    const opened = await seedTurn(at.db, own.session);
    expect(await overdue(own)).toBe(false);
    await end(at.db, opened, COMPLETED);
    expect(await overdue(own)).toBe(false);
    await at.db.update(turn).set({ endedAt: old }).where(eq(turn.id, opened.turn));
    expect(await overdue(own)).toBe(true);
    await at.db.update(goal).set({ isFinal: true }).where(eq(goal.id, own.goal));
    expect(await overdue(own)).toBe(false);
  });
});

describe('the bill', () => {
  const requestOf = async (turn: string, owner: string, change: Partial<typeof usage.$inferInsert> = {}) =>
    await at.db.insert(usage).values({
      attempt: id('att'),
      sample: id('sample'),
      session: owner,
      turn,
      step: 0,
      model: 'm',
      outputCapTokens: 100,
      inputTokens: 100,
      cachedTokens: 20,
      outputTokens: 7,
      reasoningTokens: 0,
      complete: true,
      worstMicroUsd: 500,
      costMicroUsd: 90,
      ...change,
    });
  const bill = async (own: { goal: string; session: string }, sinceTurn = 0) => {
    const { spent, held } = await billOfGoal(at.db, { session: own.session, sinceTurn });
    return [spent.tokens, spent.microUsd, held.tokens, held.microUsd];
  };

  test('has the turns since the goal began and who judged them; what is open counts as the worst case', async () => {
    const own = await seedGoal();
    await send(at.db, own.session, 'prompt');
    const first = await seedTurn(at.db, own.session);
    await requestOf(first.turn, own.session);
    await end(at.db, first, COMPLETED);
    await direct(own, 1, 1);
    const second = await seedTurn(at.db, own.session);
    await requestOf(second.turn, own.session);
    await requestOf(second.turn, own.session, { step: 1_000_000 });
    expect(await bill(own)).toEqual([3 * 87, 3 * 90, 0, 0]);
    const open = { inputTokens: null, cachedTokens: null, outputTokens: null, costMicroUsd: null, complete: false };
    await requestOf(second.turn, own.session, open);
    expect(await bill(own, 1)).toEqual([2 * 87, 2 * 90 + 500, 0, 0]);
  });

  test('has a sub-agent once: what it was lent is held back while it runs, what it used is charged at its end', async () => {
    const own = await seedGoal();
    await direct(own);
    const turn = await seedTurn(at.db, own.session);
    const child = await seedAgentOf({ ...own, ...turn });
    const inner = await seedTurn(at.db, child);
    await requestOf(inner.turn, child);
    // The turn that started it is over, and its end knows nothing of what comes.
    await end(at.db, turn, COMPLETED);
    expect(await bill(own)).toEqual([0, 0, 400, 40]);
    const over = { endedAt: new Date(), chargedTokens: 87, chargedMicroUsd: 90 };
    await at.db.update(subAgent).set(over).where(eq(subAgent.session, child));
    expect([await bill(own), (await look(own)).bill]).toEqual([
      [87, 90, 0, 0],
      { spent: { tokens: 87, microUsd: 90 }, held: { tokens: 0, microUsd: 0 } },
    ]);
  });
});

describe('what is left for a round', () => {
  const limitsOf = async (owner: string) => {
    const step = await next(at.db, owner);
    if (step.kind !== 'start') throw new Error(step.kind);
    const { maxTokens, maxMicroUsd } = step.turn.limits;
    return [maxTokens, maxMicroUsd];
  };

  test.each<[string, Partial<typeof subAgent.$inferInsert>, unknown]>([
    ['runs with what it was lent', {}, [600, 360]],
    ['has ended', { endedAt: new Date(), chargedTokens: 87, chargedMicroUsd: 90 }, [913, 310]],
  ])('is without what a sub-agent of a turn before it has: it %s', async (_, ended, expected) => {
    const own = await seedGoal();
    await direct(own);
    await send(at.db, own.session, 'prompt');
    const before = await seedTurn(at.db, own.session);
    const child = await seedAgentOf({ ...own, ...before });
    await end(at.db, before, COMPLETED);
    await at.db
      .update(subAgent)
      .set({ n: 1, ...ended })
      .where(eq(subAgent.session, child));
    expect(await limitsOf(own.session)).toEqual(expected);
  });
});

describe('an event that is reported to the session', () => {
  const report = (session: string, event: string, name = 'ci') =>
    storeOutsideEvent(at.db, { session, id: event, name, text: 'green', by: 'ci' });

  test('is a wake of its goal, once; the sweeper tells it until the goal remembers it', async () => {
    const own = await seedGoal();
    expect(await report(own.session, 'e1')).toMatchObject({ isNew: true, waits: 0, goal: own.goal });
    expect(await report(own.session, 'e1')).toMatchObject({ isNew: false, goal: null });
    const { wakes } = await look(own);
    expect(wakes).toEqual([{ id: expect.stringMatching(/^wk_/) as string, event: eventHash('ci'), to: 'session' }]);
    await at.db
      .update(wake)
      .set({ createdAt: new Date(0) })
      .where(eq(wake.goal, own.goal));
    await at.db
      .update(goal)
      .set({ createdAt: new Date(0), state: sql`jsonb_set(state, '{facts}', '[]')` })
      .where(eq(goal.id, own.goal));
    expect(await untoldGoals(at.db, 100)).toContain(own.goal);
    const remembered = JSON.stringify(wakes);
    await at.db
      .update(goal)
      .set({ state: sql`jsonb_set(state, '{pendingWakes}', ${remembered}::jsonb)` })
      .where(eq(goal.id, own.goal));
    expect(await untoldGoals(at.db, 100)).not.toContain(own.goal);
  });

  test('is nothing but an event where there is no goal, or the goal is over', async () => {
    const { session: alone } = await seedJob(at.db);
    expect(await report(alone, 'e1')).toMatchObject({ isNew: true, goal: null });
    const own = await seedGoal();
    await at.db.update(goal).set({ isFinal: true }).where(eq(goal.id, own.goal));
    expect(await report(own.session, 'e1')).toMatchObject({ goal: null });
    expect(await at.db.$count(wake, eq(wake.goal, own.goal))).toBe(0);
  });

  test('is told to the round that it has begun, and to no later one', async () => {
    const own = await seedGoal();
    await direct(own);
    await report(own.session, 'e1');
    await storeWake(at.db, { goal: own.goal, key: 'w', source: 'api', event: 'deploy', by: null });
    expect(await wakingEvents(at.db, own.goal)).toEqual([]);
    await at.db
      .update(wake)
      .set({ outcome: 'fired', settledAt: sql`clock_timestamp()` })
      .where(eq(wake.goal, own.goal));
    expect(await wakingEvents(at.db, own.goal)).toEqual([
      { name: 'ci', text: 'green' },
      { name: 'deploy', text: '' },
    ]);
    await end(at.db, await seedTurn(at.db, own.session), COMPLETED);
    await direct(own, 2, 1);
    expect(await wakingEvents(at.db, own.goal)).toEqual([]);
  });
});

describe('what is told of a goal', () => {
  test('is written once, also by a repeat: events, a new objective, wakes', async () => {
    const own = await seedGoal();
    const { id: woken } = await storeWake(at.db, { goal: own.goal, key: 'w', source: 'api', event: null, by: null });
    const checks = [{ command: 'npm test', timeoutSeconds: 9 }];
    const edit = { goal: own.goal, id: 'e', kind: 'edit', objective: 'second', checks, by: 'a', why: null } as const;
    await storeGoalCommand(at.db, edit);
    const state = (await findGoal(at.db, own.goal))!.state;
    const facts: readonly GoalFact[] = [
      { n: 2, kind: 'edited', edit: 'e' },
      {
        n: 3,
        kind: 'moved',
        to: { kind: 'paused', by: 'user' },
        cause: { name: 'command', id: 'e' },
        decidedBy: 'user',
        turn: null,
      },
      { n: 4, kind: 'wake_settled', wake: woken, outcome: 'recorded', why: 'paused(user)' },
    ];
    const paused = { ...state, status: { kind: 'paused', by: 'user' } as const, facts };
    await recordFacts(at.db, own, facts, paused);
    const once = await journal(at.db, own.session);
    await recordFacts(at.db, own, facts, paused);
    expect(await journal(at.db, own.session)).toEqual(once);
    expect(once.filter(({ layer }) => layer === 'goal')).toEqual([
      { kind: 'goal.edited', layer: 'goal', goal: own.goal, edit: 'e' },
      expect.objectContaining({ kind: 'goal.moved', reason: 'paused', detail: 'user', by: 'a', signal: 'command' }),
      expect.objectContaining({ kind: 'goal.wake', outcome: 'recorded', why: 'paused(user)' }),
    ]);
    expect(await findGoal(at.db, own.goal)).toMatchObject({
      objective: 'second',
      checks,
      version: 2,
      status: 'paused(user)',
    });
  });

  test('is not set back by an attempt that comes late', async () => {
    const own = await seedGoal();
    const state = (await findGoal(at.db, own.goal))!.state;
    const moved = (n: number, by: 'user' | 'refusal'): GoalFact => ({
      n,
      kind: 'moved',
      to: { kind: 'paused', by },
      cause: { name: 'created' },
      decidedBy: 'user',
      turn: null,
    });
    const paused = (by: 'user' | 'refusal', nextFact: number) => ({
      ...state,
      status: { kind: 'paused', by } as const,
      nextFact,
    });
    await recordFacts(at.db, own, [moved(3, 'user')], paused('user', 4));
    await recordFacts(at.db, own, [moved(2, 'refusal')], paused('refusal', 3));
    expect((await findGoal(at.db, own.goal))?.status).toBe('paused(user)');
  });

  test('a verdict is kept once: who comes second gets the first one’s', async () => {
    const own = await seedGoal();
    const verdict = { key: id('v'), ...own, turn: 't', source: 'judge', found: 'continue', text: 'x' } as const;
    expect(await keepVerdict(at.db, { ...verdict, told: { kind: 'one' } })).toEqual({ kind: 'one' });
    expect(await keepVerdict(at.db, { ...verdict, told: { kind: 'two' } })).toEqual({ kind: 'one' });
  });

  // The turn of a goal that was cancelled may still run: its end would have paused the one after it.
  test('a goal begins behind the turn that runs when it is created, and waits for its end', async () => {
    const { session: owner } = await seedGoal();
    await at.db.update(goal).set({ isFinal: true }).where(eq(goal.session, owner));
    await send(at.db, owner, 'prompt');
    const running = await seedTurn(at.db, owner);
    const next = { id: id('goal'), tenant: 'default', session: owner, objective: 'x', checks: [], judge: {} };
    await storeGoal(at.db, { ...next, budget: BUDGET, sceptics: 1, by: null, fingerprint: 'f' });
    const { state } = (await findGoal(at.db, next.id))!;
    expect([state.sinceTurn, state.seenTurn]).toEqual([1, { n: 1, turn: running.turn }]);
    const own = { goal: next.id, session: owner };
    expect(await direct(own, 1, 1)).toBe('busy');
    await end(at.db, running, CANCELLED);
    expect((await look(own, 1)).turns).toEqual([]);
    expect(await direct(own, 1, 1)).toBe('queued');
  });

  test('a session has one goal that is open', async () => {
    const own = await seedGoal();
    const second = { ...(await findGoal(at.db, own.goal))!, budget: BUDGET, sceptics: 1, by: null, id: id('goal') };
    expect(await storeGoal(at.db, second)).toBe('another_is_open');
    await at.db.update(goal).set({ isFinal: true }).where(eq(goal.id, own.goal));
    expect(await storeGoal(at.db, second)).toBe('stored');
  });
});
