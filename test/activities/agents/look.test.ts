import { and, eq, like } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { lookAtAgent, lookAtAgents } from '../../../activities/agents/look.ts';
import { storeGoal } from '../../../activities/store/goals.ts';
import { HOOKS_RECEIVER } from '../../../activities/store/reports.ts';
import { lockTurn } from '../../../activities/store/fence.ts';
import { sha256 } from '../../../activities/store/hash.ts';
import { readCall } from '../../../activities/store/ledger.ts';
import { commit, goalRound, outbox, subAgent, usage } from '../../../activities/store/schema.ts';
import type { WaitPlan } from '../../../activities/tools/define-tool.ts';
import { POLICY } from '../../../workflows/core/policy.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { COMPLETED, end, row } from '../store/ending.ts';
import { lookingAt, seedAgents } from '../store/seed-agents.ts';
import { AGENT, id, seedCalls, seedJob, seedTurn, type SeededTurn } from '../store/seed.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
});
afterAll(() => at.close());

const LEAD = { ...AGENT, agents: ['tester'] };

async function seedLead(): Promise<SeededTurn> {
  return await seedTurn(at.db, (await seedJob(at.db, { agent: LEAD })).session);
}

/** A call in the turn's newest message. */
async function callIn(on: SeededTurn): Promise<string> {
  const [key] = await seedCalls(at.db, { ...on, head: (await row(at.db, on)).head }, 'none');
  return key!;
}

/** Starts one, as the first look at its call does. */
async function start(on: SeededTurn, plan: Partial<WaitPlan & { kind: 'agent' }> = {}, listens?: () => boolean) {
  const key = await callIn(on);
  const looking = await lookingAt(at.db, on, key, listens);
  const asked = { kind: 'agent', agent: 'tester', prompt: 'p', mode: 'background', ...plan } as const;
  const look = await at.db.transaction(async (tx) => {
    await lockTurn(tx, on.fence);
    const agents = () => ({ agent: AGENT, named: [] });
    return await lookAtAgent(tx, looking, { maxTokens: null, maxMicroUsd: null, ...asked }, { agents, author: null });
  });
  const [started] = await at.db.select().from(subAgent).where(eq(subAgent.call, key));
  return { look, started, result: (await readCall(at.db, key))!.call.result };
}

describe('the lease of a sub-agent', () => {
  /** A turn that is a round of a goal which has so many tokens left. */
  async function roundWith(maxTokens: number): Promise<SeededTurn> {
    const on = await seedLead();
    const own = id('goal');
    const facts = { tenant: 'default', objective: 'o', checks: [], judge: {}, sceptics: 1, by: null, fingerprint: 'f' };
    const budget = { turns: 5, tokens: maxTokens, microUsd: null, runningMs: 60_000 };
    expect(await storeGoal(at.db, { id: own, session: on.session, budget, ...facts })).toBe('stored');
    const limits = { maxTokens, maxMicroUsd: null, maxRunningMs: 60_000 };
    await at.db.insert(goalRound).values({ goal: own, round: 1, input: on.input, limits });
    return on;
  }

  // The agent may spend two million; what its goal has left is less, and all its rounds live on that.
  test('comes out of what the goal has left, and what is given back is there for the next one', async () => {
    const on = await roundWith(1_000);
    const kept = 1_000 * POLICY.subAgents.keptShare;
    const first = await start(on);
    expect(first.started).toMatchObject({ leaseTokens: (1_000 - kept) * POLICY.subAgents.usualShare });
    const rest = 1_000 - kept - first.started!.leaseTokens!;
    const refused = await start(on, { maxTokens: rest + 1 });
    expect(refused).toMatchObject({ look: { kind: 'over', status: 'error' }, started: undefined });
    expect(refused.result).toContain(`${rest} tokens of the ${rest + 1} tokens that you ask for can be given away`);
    const below = await seedTurn(at.db, first.started!.session);
    await at.db.insert(usage).values({
      ...{ attempt: id('att'), sample: id(), session: below.session, turn: below.turn, step: 0, model: 'm' },
      ...{ outputCapTokens: 1, inputTokens: 60, cachedTokens: 20, outputTokens: 10, complete: true },
    });
    await end(at.db, below, COMPLETED);
    expect((await start(on, { maxTokens: 1_000 - kept - 50 + 1 })).started).toBeUndefined();
    expect((await start(on, { maxTokens: 1_000 - kept - 50 })).started).toMatchObject({ leaseTokens: 850 });
  });
});

describe('a wait for sub-agents', () => {
  const within = (forMs: number | null) => ({ kind: 'agents', ids: null, for: 'all', forMs }) as const;

  test('is over when its time is, by the clock of the first look, and says who still runs', async () => {
    const on = await seedLead();
    const agents = await seedAgents(at.db, on, 'background', 'background');
    const key = await callIn(on);
    const look = async () => {
      const looking = await lookingAt(at.db, on, key);
      return await at.db.transaction((tx) => lookAtAgents(tx, looking, within(60_000)));
    };
    const before = Date.now();
    const first = await look();
    if (first.kind !== 'waiting') throw new Error(first.kind);
    expect(first.wait).toBe(`${on.session}/agents`);
    expect(first.untilMs).toBeGreaterThanOrEqual(before + 60_000);
    expect(first.untilMs).toBeLessThan(before + POLICY.subAgents.lookAgainMs);
    expect(await look()).toEqual(first);
    await end(at.db, await seedTurn(at.db, agents[0]), COMPLETED, { lastText: 'I am done.' });
    await at.db
      .update(commit)
      .set({ result: { untilMs: Date.now() } })
      .where(eq(commit.key, sha256('wait', key)));
    expect(await look()).toEqual({ kind: 'over', status: 'ok', stillRuns: true });
    expect((await readCall(at.db, key))!.call.result!.split('\n\n')).toEqual([
      'The time is over.',
      expect.stringMatching(/^Sub-agent .*\/agent\/1 [^]*\nI am done\.$/),
      `Still running: ${agents[1]} (tester).`,
    ]);
  });

  test('without a time is looked at again before long', async () => {
    const on = await seedLead();
    await seedAgents(at.db, on, 'background');
    const looking = await lookingAt(at.db, on, await callIn(on));
    const look = await at.db.transaction((tx) => lookAtAgents(tx, looking, within(null)));
    if (look.kind !== 'waiting') throw new Error(look.kind);
    expect(look.untilMs).toBeGreaterThan(Date.now() + POLICY.subAgents.lookAgainMs - 60_000);
  });
});

test('hooks are told of the start and the end of a sub-agent, each in the transaction of what it tells', async () => {
  const on = await seedLead();
  const { started } = await start(on, {}, () => true);
  const child = started!.session;
  await end(at.db, await seedTurn(at.db, child), COMPLETED, { reports: () => true });
  const rows = await at.db
    .select({ event: outbox.event, body: outbox.body })
    .from(outbox)
    .where(and(eq(outbox.receiver, HOOKS_RECEIVER), like(outbox.event, `agent_%/${child}`)))
    .orderBy(outbox.event);
  const facts = { agent: child, name: 'tester', mode: 'background' };
  const ended = { reason: 'COMPLETED', detail: 'final_answer', decidedBy: 'model' };
  const of = { session: on.session, turn: on.turn };
  expect(rows).toEqual([
    { event: `agent_start/${child}`, body: { event: 'SubagentStart', ...of, facts } },
    { event: `agent_stop/${child}`, body: { event: 'SubagentStop', ...of, facts: { ...facts, ...ended } } },
  ]);
});
