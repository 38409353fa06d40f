import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Deps } from '../../../activities/deps.ts';
import { CallMemory } from '../../../activities/store/call-memory.ts';
import { ownerOf } from '../../../activities/store/owners.ts';
import { openSample } from '../../../activities/store/samples.ts';
import { call, effect, message, subAgent, turn } from '../../../activities/store/schema.ts';
import { ChainCache, chainOn, writeLinks } from '../../../activities/store/transcript.ts';
import { planSample, type SamplePlan } from '../../../activities/turn/plan-sample.ts';
import { DEFAULT_LIMITS } from '../../../workflows/core/policy.ts';
import type { SampleRequest } from '../../../workflows/core/requests.ts';
import type { Message } from '../../../workflows/core/transcript.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { row } from '../store/ending.ts';
import { seedAgents } from '../store/seed-agents.ts';
import { AGENT, id, oneToken, said, seedCalls, seedJob, seedTurn, type SeededTurn, send } from '../store/seed.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
});
afterAll(() => at.close());

const POLITE = { ...AGENT, todoGate: true, agents: ['tester'] };

const open = async () => await seedTurn(at.db, (await seedJob(at.db, { agent: POLITE })).session);

/** Puts messages behind the turn's head. */
async function append(on: SeededTurn, ...bodies: readonly Message[]): Promise<void> {
  const { head: hash } = await row(at.db, on);
  const [last] = await at.db.select({ depth: message.depth }).from(message).where(eq(message.hash, hash));
  const links = chainOn({ hash, depth: last?.depth ?? 0 }, bodies, oneToken);
  await at.db.transaction((tx) => writeLinks(tx, links));
  await at.db
    .update(turn)
    .set({ head: links.at(-1)!.hash })
    .where(eq(turn.id, on.turn));
}

const RESULT = { kind: 'tool_result', ordinal: 0, callId: 'c0', text: 'ok', isError: false, blob: null } as const;

function todoList(...todos: readonly (readonly [content: string, status: string])[]): Message[] {
  const list = { todos: todos.map(([content, status]) => ({ content, status })) };
  const asked = { id: 'c0', name: 'todo_write', arguments: JSON.stringify(list) };
  return [{ ...said(''), calls: [asked] } as Message, { ...RESULT, tool: 'todo_write' }];
}

async function requestOf(on: SeededTurn, change: Partial<SampleRequest>): Promise<SampleRequest> {
  return {
    fence: on.fence,
    purpose: 'ask',
    agent: on.agent,
    tools: on.tools,
    step: 3,
    resample: 0,
    head: (await row(at.db, on)).head,
    results: 0,
    inputs: [],
    reminders: [],
    transition: 'tool_results',
    watchRepetition: true,
    model: 'primary',
    outputTokens: 1_000,
    onCut: 'drop',
    schema: 'none',
    contextTokens: DEFAULT_LIMITS.contextTokens,
    mayCompact: true,
    ...change,
  };
}

/** As a worker that has seen nothing of it plans it. */
async function plan(on: SeededTurn, request: SampleRequest, tries: 'first' | 'repeated'): Promise<SamplePlan> {
  const fresh = { database: at, chains: new ChainCache(), calls: new CallMemory(), nativeAnswers: () => null };
  return await planSample(fresh as unknown as Deps, await ownerOf(at.db, on.turn), request, tries);
}

async function commit(on: SeededTurn, request: SampleRequest, planned: SamplePlan) {
  return await openSample(at.db, {
    fence: on.fence,
    session: on.session,
    sample: planned.key,
    attempt: id('att'),
    step: request.step,
    request: { model: 'm', outputCapTokens: 100, worstMicroUsd: null },
    base: request.head,
    links: planned.links,
    joined: planned.joined,
    events: [],
  });
}

const textsOf = ({ links }: SamplePlan) => links.map(({ body }) => body.text);

// What it is told of must not be what keeps it from being told: a refused commit is tried again till the turn fails.
test('a reminder that a retry would word otherwise, since a sub-agent has ended, is the one that was committed', async () => {
  const on = await open();
  const [agent] = await seedAgents(at.db, on, 'background');
  await append(on, { ...RESULT, tool: 'spawn_agent' }, ...todoList(['theirs', 'in_progress'], ['mine', 'pending']));
  const request = await requestOf(on, { reminders: ['todo'] });
  const first = await plan(on, request, 'first');
  expect(textsOf(first)).toEqual([expect.stringMatching(/\n- mine$/)]);
  expect(await commit(on, request, first)).toMatchObject({ kind: 'opened', lost: 0 });
  await at.db.update(subAgent).set({ endedAt: new Date() }).where(eq(subAgent.session, agent!));
  expect(textsOf(await plan(on, request, 'first'))).toEqual([expect.stringMatching(/\n- theirs\n- mine$/)]);
  const again = await plan(on, request, 'repeated');
  expect(again.links).toEqual(first.links);
  expect(again.key).toBe(first.key);
  expect(await commit(on, request, again)).toMatchObject({ kind: 'opened', lost: 1 });
});

test('a result that came late does not change what the model was shown of its call', async () => {
  const on = await open();
  const [key] = await seedCalls(at.db, on, 'once');
  await at.db.update(effect).set({ state: 'unknown' }).where(eq(effect.key, key!));
  const steer = await send(at.db, on.session, 'steer', 'look here');
  const request = await requestOf(on, { results: 1, inputs: [steer], reminders: ['identical_steps'] });
  const first = await plan(on, request, 'first');
  expect(first.links.map(({ body }) => body.kind)).toEqual(['tool_result', 'user', 'reminder']);
  await commit(on, request, first);
  await at.db.update(call).set({ status: 'ok', result: 'done after all' }).where(eq(call.key, key!));
  const again = await plan(on, { ...request, purpose: 'settle' }, 'repeated');
  expect([again.key, again.links]).toEqual([first.key, first.links]);
  // Nor where the reply is there already and only its answer was lost: the walk goes past it.
  await append(on, said('All is done.'));
  expect((await plan(on, request, 'repeated')).key).toBe(first.key);
});

test('an opening that was not committed, or has other parts, is planned as it is now', async () => {
  const on = await open();
  await append(on, said('So far so good.'));
  const request = await requestOf(on, { reminders: ['contract'] });
  expect(textsOf(await plan(on, request, 'repeated'))).toHaveLength(1);
  await commit(on, request, await plan(on, request, 'first'));
  const other = await plan(on, { ...request, reminders: ['empty_reply'] }, 'repeated');
  expect(other.links.map(({ body }) => body)).toMatchObject([{ kind: 'reminder', code: 'empty_reply' }]);
});
