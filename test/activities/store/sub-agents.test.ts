import { and, asc, eq, ne, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { lookAtAgent, lookAtAgents } from '../../../activities/agents/look.ts';
import { readBlob } from '../../../activities/store/blobs.ts';
import type { Tx } from '../../../activities/store/database.ts';
import { lockTurn } from '../../../activities/store/fence.ts';
import { storeCancel } from '../../../activities/store/cancels.ts';
import { storeInput } from '../../../activities/store/intake.ts';
import { readCall } from '../../../activities/store/ledger.ts';
import { setPlan } from '../../../activities/store/plan.ts';
import { advance } from '../../../activities/store/queue.ts';
import { cancel, input, session, subAgent } from '../../../activities/store/schema.ts';
import { markFamily } from '../../../activities/store/sub-agents.ts';
import { POLICY } from '../../../workflows/core/policy.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { until } from '../../support/until.ts';
import { asked, CANCELLED, COMPLETED, end, row } from './ending.ts';
import { lookingAt, seedAgents, startAgent } from './seed-agents.ts';
import { AGENT, id, seedCalls, seedJob, seedTurn, type SeededTurn } from './seed.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
});
afterAll(() => at.close());

const ANN = { by: 'ann', why: 'enough', decidedBy: 'user' } as const;

/** Of all levels: who cancelled what. */
const cancelled = async (root: string) =>
  (
    await at.db
      .select({ session: subAgent.session, by: subAgent.cancelBy })
      .from(subAgent)
      .where(sql`starts_with(${subAgent.session}, ${root})`)
      .orderBy(asc(subAgent.session))
  ).map(({ session, by }) => [session.slice(root.length), by]);

/** While `hold` is open, `work` waits for it; then both go on. */
async function against<T>(hold: (tx: Tx) => Promise<void>, work: () => Promise<T>): Promise<T> {
  const { started } = await at.db.transaction(async (tx) => {
    await hold(tx);
    const working = work();
    await until('the other one waits', async () => {
      const { rows } = await at.db.execute<{ n: number }>(sql`
        select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`);
      return rows[0]?.n === 1;
    });
    return { started: working };
  });
  return await started;
}

const headOf = async (on: SeededTurn) => (await row(at.db, on)).head;

describe('a cancel that goes through a family', () => {
  // Whoever looks before the start is committed does not see it: a child that nobody stops spends its lease.
  test('waits for a child that its turn is starting at that instant, on the first level and below', async () => {
    const on = await seedTurn(at.db);
    const [child] = await seedAgents(at.db, on, 'background');
    const below = await seedTurn(at.db, child!);
    for (const starting of [on, below]) {
      const [call] = await seedCalls(at.db, { ...starting, head: await headOf(starting) }, 'none');
      await at.db.update(subAgent).set({ cancelledAt: null, cancelBy: null });
      await against(
        async (tx) => {
          await lockTurn(tx, starting.fence);
          await startAgent(tx, starting, { call: call!, n: 2, mode: 'background' });
        },
        () => markFamily(at.db, on.session, ANN),
      );
    }
    expect(await cancelled(on.session)).toEqual([
      ['/agent/1', 'ann'],
      ['/agent/1/agent/2', 'ann'],
      ['/agent/2', 'ann'],
    ]);
  });

  test('waits for a turn that opens at that instant; the cancel finds it', async () => {
    const on = await seedTurn(at.db);
    const [child] = await seedAgents(at.db, on, 'background');
    await against(
      async (tx) => {
        await tx.select().from(subAgent).where(eq(subAgent.session, child!)).for('share');
      },
      () => markFamily(at.db, on.session, ANN),
    );
    const { turn } = await seedTurn(at.db, child!);
    expect(await at.db.select().from(cancel).where(eq(cancel.turn, turn))).toMatchObject([
      { by: 'ann', why: 'enough', decidedBy: 'user', detail: 'parent_cancelled' },
    ]);
  });

  test('and ends of turns on all levels do not lock each other out; the first word stands', async () => {
    const on = await seedTurn(at.db);
    const children = await seedAgents(at.db, on, ...Array.from({ length: 4 }, () => 'background' as const));
    const turns = [];
    for (const child of children) {
      const own = await seedTurn(at.db, child);
      turns.push(own);
      await seedAgents(at.db, own, 'foreground', 'background');
    }
    await Promise.all([
      ...turns.slice(0, 2).map((own) => end(at.db, own, COMPLETED)),
      ...turns.slice(2).map((own) => end(at.db, own, CANCELLED)),
      markFamily(at.db, on.session, ANN),
      markFamily(at.db, children[0]!, { ...ANN, by: 'bob' }),
    ]);
    const rows = await at.db.select().from(subAgent).where(sql`starts_with(${subAgent.session}, ${on.session})`);
    expect(rows.filter((row) => row.endedAt === null && row.cancelledAt === null)).toEqual([]);
    const before = await cancelled(on.session);
    await markFamily(at.db, on.session, { ...ANN, by: 'eve' });
    expect(await cancelled(on.session)).toEqual(before);
  });

  // It may be on its way to the store while the cancel goes through: what it began then nobody would stop before the end.
  test('nothing starts under a turn that is being cancelled, or under who was stopped', async () => {
    const on = await seedTurn(at.db);
    const [child] = await seedAgents(at.db, on, 'background');
    const below = await seedTurn(at.db, child);
    for (const starting of [on, below]) {
      const [key] = await seedCalls(at.db, { ...starting, head: await headOf(starting) }, 'none');
      if (starting === on) await storeCancel(at.db, asked(on));
      else await markFamily(at.db, on.session, ANN);
      expect(await look(starting, key!)).toEqual({ kind: 'over', status: 'not_started' });
    }
    expect(await cancelled(on.session)).toEqual([['/agent/1', 'ann']]);
  });
});

/** The first look at a call that is to start a sub-agent. */
async function look(on: SeededTurn, key: string) {
  const looking = await lookingAt(at.db, on, key);
  const plan = { kind: 'agent', agent: 'tester', prompt: 'p', mode: 'background' } as const;
  return await at.db.transaction(async (tx) => {
    await lockTurn(tx, on.fence);
    const nobody = { agents: () => null, author: null };
    return await lookAtAgent(tx, looking, { ...plan, maxTokens: null, maxMicroUsd: null }, nobody);
  });
}

describe('a report that is longer than a result may be', () => {
  const words = (n: number) => `first ${String(n).repeat(POLICY.tools.resultChars * 2)} last`;
  const reportOf = async (agent: string) =>
    (await at.db.select().from(subAgent).where(eq(subAgent.session, agent)))[0]!.report!;
  const idIn = (text: string) => /read_output, id ([0-9a-f]{64})/.exec(text)?.[1] ?? '';
  const kept = async (hash: string) => String(await readBlob(at.db, 'default', hash));

  /** A turn of an agent with these tools, whose sub-agents have said so much. */
  async function reported(tools: readonly string[], ...said: readonly string[]) {
    const on = await seedTurn(at.db, (await seedJob(at.db, { agent: { ...AGENT, tools } })).session);
    const agents = await seedAgents(at.db, on, ...said.map(() => 'background' as const));
    for (const [n, agent] of agents.entries()) {
      await end(at.db, await seedTurn(at.db, agent), COMPLETED, { lastText: said[n]! });
    }
    return { on, agents };
  }

  test('is cut, names where the whole is kept before its words, and is read on there', async () => {
    const { on, agents } = await reported(['read_output'], words(1));
    const report = await reportOf(agents[0]!);
    expect(report.length).toBeLessThanOrEqual(POLICY.tools.resultChars);
    const intro = new RegExp(
      `^Sub-agent ${on.session}/agent/1 \\(tester\\) ended COMPLETED/final_answer, decided by model\\. It used 0 tokens\\. ` +
        'It is shortened here; the whole is kept: read_output, id [0-9a-f]{64}\\. All that follows is what it said last:\\nfirst 11',
    );
    expect(report).toMatch(intro);
    expect(report).toMatch(/characters left out here[^]*1 last$/);
    expect(await kept(idIn(report))).toBe(words(1));
    const [told] = await at.db
      .select()
      .from(input)
      .where(eq(input.id, `agent_end/${agents[0]}`));
    expect(told!.body).toBe(report);
  });

  test('names nothing to who could not read on', async () => {
    const { agents } = await reported([], words(1));
    const report = await reportOf(agents[0]!);
    expect(report).toMatch(/It used 0 tokens\. All that follows is what it said last:\nfirst 1/);
    expect(report.length).toBeLessThanOrEqual(POLICY.tools.resultChars);
  });

  // Eight reports of the greatest length are no result that a model could be shown.
  test('several of them in one wait are kept whole beside its result', async () => {
    const { on, agents } = await reported(['read_output'], words(1), words(2));
    const [key] = await seedCalls(at.db, { ...on, head: await headOf(on) }, 'none');
    const looking = await lookingAt(at.db, on, key!);
    const plan = { kind: 'agents', ids: null, for: 'all', forMs: null } as const;
    expect(await at.db.transaction((tx) => lookAtAgents(tx, looking, plan))).toEqual({ kind: 'over', status: 'ok' });
    const row = (await readCall(at.db, key!))!.call;
    expect(row.result!.length).toBeLessThanOrEqual(POLICY.tools.resultChars);
    expect(await kept(row.blob!)).toBe(`${await reportOf(agents[0]!)}\n\n${await reportOf(agents[1]!)}`);
  });
});

describe('the plan flag', () => {
  const planOf = async (own: string) =>
    (await at.db.select({ plan: session.plan }).from(session).where(eq(session.id, own)))[0]!.plan;

  // A lead that may only read must not have its work done by those who may do more.
  test('holds for all that runs below, and for what opens later; it is taken away with the parent’s', async () => {
    const on = await seedTurn(at.db);
    const [child, ended, late] = await seedAgents(at.db, on, 'background', 'background', 'foreground');
    const below = await seedTurn(at.db, child);
    const [grandchild] = await seedAgents(at.db, below, 'foreground');
    await at.db.update(subAgent).set({ endedAt: new Date() }).where(eq(subAgent.session, ended!));
    const set = (plan: boolean) => setPlan(at.db, { tenant: 'default', session: on.session, plan, by: 'ann' });
    expect(await set(true)).toBe('set');
    const flags = async () => await Promise.all([on.session, child!, grandchild!, ended!].map(planOf));
    expect(await flags()).toEqual([true, true, true, false]);
    // As where it was being started while the flag was set.
    await at.db.update(session).set({ plan: false }).where(eq(session.id, late!));
    await seedTurn(at.db, late);
    expect(await planOf(late!)).toBe(true);
    expect(await set(false)).toBe('set');
    expect(await flags()).toEqual([false, false, false, false]);
  });
});

describe('hooks that look at prompts', () => {
  const screening = { has: (event: string) => event === 'UserPromptSubmit', cleared: new Map<string, string>() };
  const look = async (of: string) => (await advance(at.db, of, null, () => [], screening)).next;

  test('are not asked about what a parent gives to its child, but about what a person says to it', async () => {
    const on = await seedTurn(at.db);
    const [child] = await seedAgents(at.db, on, 'background');
    expect(await look(child!)).toMatchObject({ kind: 'start', turn: { turn: `${child}/1` } });
    const steer = { id: id('in'), session: child!, kind: 'steer', text: 'leave it', sender: 'pat' } as const;
    expect(await storeInput(at.db, steer)).toBe('accepted');
    expect(await look(child!)).toMatchObject({ kind: 'screen', input: steer.id, sender: 'pat', turn: `${child}/1` });
  });

  // Trap: whoever writes may give any name; under that of the parent a message would go by the hooks.
  test.each(['prompt', 'steer'] as const)(
    'are asked about a person’s %s that comes in the name of the parent',
    async (kind) => {
      const on = await seedTurn(at.db);
      const [child] = await seedAgents(at.db, on, 'background');
      const said = { id: id('in'), session: child!, kind, text: 'leave it', sender: on.session };
      expect(await storeInput(at.db, said)).toBe('accepted');
      const own = and(eq(input.session, child!), ne(input.id, said.id));
      await at.db.update(input).set({ status: 'withdrawn' }).where(own);
      expect(await look(child!)).toMatchObject({ kind: 'screen', input: said.id, sender: on.session });
    },
  );

  // In a root session no parent has it.
  test('are asked about a prompt whose sender has the name of a session', async () => {
    const own = await seedJob(at.db, { sender: 'ses_other' });
    expect(await look(own.session)).toMatchObject({ kind: 'screen', input: own.input, sender: 'ses_other' });
  });
});
