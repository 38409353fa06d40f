import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { finishCall } from '../../activities/store/ledger.ts';
import { call, effect } from '../../activities/store/schema.ts';
import { defineTool, type Tool, type ToolContext, type ToolResult } from '../../activities/tools/define-tool.ts';
import { createRuns, type OpenApproval, type Runs } from '../../client/index.ts';
import { callTools, countToolResults, say } from '../../testing/index.ts';
import { conversations, userTexts } from '../support/conversations.ts';
import { cancelTurn, turnHandle } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

/** What the n-th sending of a call does, by the name of its conversation; the keys that were sent. */
interface World {
  readonly keys: string[];
  run(n: number, context: ToolContext): Promise<ToolResult>;
}

const worlds = new Map<string, World>();
const input = z.strictObject({ world: z.string() });
const lost = () => Promise.reject(new Error('the answer was lost'));
const done: ToolResult = { isError: false, text: 'done' };

function risky(name: string, change: Partial<Tool<z.output<typeof input>>> = {}): Tool {
  return defineTool<z.output<typeof input>>({
    name,
    description: 'Fails in a way that tells nothing.',
    input,
    locks: ({ world }) => [{ resource: world, mode: 'write' }],
    ...change,
    async run({ world: at }, context) {
      const world = worlds.get(at);
      if (!world) throw new Error('no such world');
      world.keys.push(context.idempotencyKey);
      return await world.run(world.keys.length, context);
    },
  }) as Tool;
}

const talk = conversations();
let at: TestHouse;
let runs: Runs;
beforeAll(async () => {
  at = await testHouse({
    rules: talk.rules,
    tools: [
      risky('risky'),
      risky('keyed', { effect: 'keyed' }),
      risky('ending', { onUnknown: 'end' }),
      risky('leaving'),
    ],
    agent: { attended: true, tools: ['risky', 'keyed', 'ending', 'leaving'] },
    others: [
      { name: 'alone', attended: false },
      { name: 'approved', attended: false, permissions: { mode: 'bypass', approvers: true } },
      { name: 'hasty', permissions: { mode: 'bypass', expiryMs: 1_500 } },
    ],
  });
  runs = createRuns(at.house);
});
afterAll(async () => {
  await at.close();
});

interface Begun {
  readonly job: string;
  readonly session: string;
  readonly keys: readonly string[];
}

/** One call whose answer is lost; the n-th time it is sent, `run` says. */
async function begin(name: string, run: World['run'] = lost, agent = 'tester', tool = 'risky'): Promise<Begun> {
  const keys: string[] = [];
  worlds.set(name, { keys, run });
  talk.on(name, (request) => {
    if (userTexts(request).length > 1) return say('Understood.');
    return countToolResults(request) === 0 ? callTools([{ name: tool, arguments: { world: name } }]) : say('Done.');
  });
  const { job, session } = await at.submit(name, { agent });
  return { job, session, keys };
}

const listed = async (session: string) => (await runs.approvals('default')).filter((each) => each.session === session);

async function asked(session: string): Promise<OpenApproval> {
  return await until('somebody is asked', async () => (await listed(session))[0]);
}

async function callStates(session: string): Promise<readonly string[]> {
  const state = await turnHandle(at, `${session}/1`).query<{ phase: { calls?: { state: string }[] } }>('state');
  return (state.phase.calls ?? []).map((each) => each.state);
}

const answer = (id: string, what: 'happened' | 'absent' | 'again', text?: string) =>
  runs.answer('default', id, { answer: what, by: 'pat', text });

async function left(session: string) {
  const { db } = at.house.database;
  const turn = `${session}/1`;
  const [made] = await db.select().from(call).where(eq(call.turn, turn));
  const [ledger] = await db.select().from(effect).where(eq(effect.turn, turn));
  const events = (await at.events(session)).map(({ event }) => event);
  const told = events.flatMap((event) => {
    switch (event.kind) {
      case 'effect.settled':
        return [`${event.kind} ${event.as} by ${event.who ?? event.by}`];
      case 'approval.answered':
        return [`${event.kind} ${event.answer} by ${event.by}`];
      case 'call.finished':
        return [`${event.kind} ${event.status}`];
      case 'effect.asked':
      case 'effect.unanswered':
      case 'call.started':
      case 'turn.ended':
        return [event.kind];
      default:
        return [];
    }
  });
  return { status: made?.status, result: made?.result, state: ledger?.state, told };
}

describe.concurrent('a person is asked what became of a call, and says that', () => {
  it('it happened: the model is told who knows, and the turn goes on', async () => {
    const { session, keys } = await begin('happened');
    const { id, asked: about, turn } = await asked(session);
    expect(about).toEqual({
      kind: 'outcome',
      tool: 'risky',
      subject: null,
      arguments: '{"world":"happened"}',
      onExpiry: 'end',
    });
    expect(turn).toBe(`${session}/1`);
    expect(await answer(id, 'happened', 'It is number 7.')).toEqual({ kind: 'recorded' });
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED', endDetail: 'final_answer' });
    expect(await left(session)).toEqual({
      status: 'ok',
      result: 'A person looked and confirms that this took effect; its own answer was lost. They add: It is number 7.',
      state: 'settled_done',
      told: [
        'call.started',
        'effect.settled unknown by reconcile',
        'effect.asked',
        'approval.answered happened by pat',
        'effect.settled settled_done by pat',
        'call.finished ok',
        'turn.ended',
      ],
    });
    expect(keys).toHaveLength(1);
    expect(await listed(session)).toEqual([]);
  });

  it('it did not: the model is told so, and nothing is sent again', async () => {
    const { session, keys } = await begin('absent');
    await answer((await asked(session)).id, 'absent');
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
    expect(await left(session)).toMatchObject({
      status: 'error',
      result: 'A person looked and found that this did not take effect. It had no effect.',
      state: 'settled_absent',
    });
    expect(keys).toHaveLength(1);
  });

  it('it may be tried again: it is sent once more under the same key', async () => {
    const { session, keys } = await begin('again', (n) => (n === 1 ? lost() : Promise.resolve(done)));
    await answer((await asked(session)).id, 'again');
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
    expect([keys.length, new Set(keys).size]).toEqual([2, 1]);
    expect(await left(session)).toEqual({
      status: 'ok',
      result: 'done',
      state: 'succeeded',
      told: [
        'call.started',
        'effect.settled unknown by reconcile',
        'effect.asked',
        'approval.answered again by pat',
        'call.started',
        'call.finished ok',
        'turn.ended',
      ],
    });
  });

  it('it may be tried again, and that is lost too: it is a question of its own, never a third sending', async () => {
    const { session, keys } = await begin('again and again');
    const first = await asked(session);
    await answer(first.id, 'again');
    const second = await until('the next question', async () =>
      (await listed(session)).find(({ id }) => id !== first.id),
    );
    expect(keys).toHaveLength(2);
    expect(await answer(first.id, 'absent')).toEqual({ kind: 'answered_before', answer: 'again', by: 'pat' });
    await answer(second.id, 'happened');
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
    expect(keys).toHaveLength(2);
    expect(await left(session)).toMatchObject({ status: 'ok', state: 'settled_done' });
  });
});

describe.concurrent('who is asked', () => {
  it('whoever approves, where nobody watches', async () => {
    const { session } = await begin('approvers', lost, 'approved');
    await answer((await asked(session)).id, 'happened');
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
  });

  it('about a keyed call too, once its own tries are used up', { timeout: 60_000 }, async () => {
    const { session, keys } = await begin('keyed', (n) => (n < 4 ? lost() : Promise.resolve(done)), 'tester', 'keyed');
    await answer((await asked(session)).id, 'again');
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
    expect([keys.length, new Set(keys).size]).toEqual([4, 1]);
  });

  it('within the turn nobody, where there is nobody, or the tool says that the turn is to end', {
    timeout: 60_000,
  }, async () => {
    for (const { session } of [await begin('nobody', lost, 'alone'), await begin('ends', lost, 'tester', 'ending')]) {
      const ended = await at.ended(session, 1, 50_000);
      expect(ended).toMatchObject({ endReason: 'INTERRUPTED', endDetail: 'unknown_outcome', recordedBy: 'recovery' });
      expect(await left(session)).toMatchObject({ status: 'unknown_ends_turn', state: 'unknown' });
      // The question is left for whoever looks later.
      expect(await listed(session)).toMatchObject([{ asked: { kind: 'outcome' }, expiresAt: null }]);
    }
  });
});

describe.concurrent('an answer', () => {
  it('counts once: of many at the same time one is recorded, and the others are told it', async () => {
    const { session } = await begin('race');
    const { id } = await asked(session);
    const answers = await Promise.all(Array.from({ length: 8 }, (_, n) => answer(id, n % 2 ? 'happened' : 'absent')));
    expect(answers.map((each) => String(each?.kind)).toSorted((a, b) => a.localeCompare(b))).toEqual([
      ...Array.from({ length: 7 }, () => 'answered_before'),
      'recorded',
    ]);
    const told = answers.flatMap((each) => (each?.kind === 'answered_before' ? [each.answer] : []));
    await at.ended(session);
    const { status } = await left(session);
    expect(new Set(told)).toEqual(new Set([status === 'ok' ? 'happened' : 'absent']));
  });

  it('must be one to this question', async () => {
    const { session } = await begin('misfit');
    const { id } = await asked(session);
    const wrong = await runs.answer('default', id, { answer: 'approved', by: 'pat' });
    expect(wrong).toEqual({ kind: 'misfit', asks: 'outcome' });
    expect(await runs.answer('nobody', id, { answer: 'happened', by: 'pat' })).toBeNull();
    await answer(id, 'happened');
    await at.ended(session);
    expect(await left(session)).toMatchObject({ status: 'ok' });
  });

  it('is refused once the call itself has told, and the turn goes on with what it told', {
    timeout: 60_000,
  }, async () => {
    const { session } = await begin('late success');
    const { id } = await asked(session);
    // A first attempt that was given up for lost comes back.
    const { db } = at.house.database;
    const [row] = await db
      .select()
      .from(effect)
      .where(eq(effect.turn, `${session}/1`));

    await finishCall(db, {
      turn: `${session}/1`,
      session,
      tenant: 'default',
      key: row?.key ?? '',
      tool: 'risky',
      status: 'ok',
      text: 'done after all',
      output: null,
      note: null,
      effect: { state: 'succeeded', attempt: row?.attempt ?? '', isCut: false },
      events: [],
    });
    expect(await answer(id, 'absent')).toEqual({ kind: 'stale', why: 'settled' });
    expect(await listed(session)).toEqual([]);
    expect(await at.ended(session, 1, 50_000)).toMatchObject({ endReason: 'COMPLETED' });
    expect(await left(session)).toMatchObject({ status: 'ok', result: 'done after all', state: 'succeeded' });
  });
});

it.concurrent('the tool is gone when the answer comes: the person’s word counts all the same', async () => {
  const { session, keys } = await begin('gone', lost, 'tester', 'leaving');
  const { id } = await asked(session);
  const { registry } = at.config;
  const { lookup } = registry;
  const without: typeof lookup = (name, offered) => lookup(name === 'leaving' ? 'nothing' : name, offered);
  Object.assign(registry, { lookup: without });
  try {
    await answer(id, 'happened');
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
  } finally {
    Object.assign(registry, { lookup });
  }
  expect(await left(session)).toMatchObject({ status: 'ok', state: 'settled_done' });
  expect(keys).toHaveLength(1);
});

describe.concurrent('while a person is asked', () => {
  it('no activity runs, and the time is no running time', async () => {
    const { session } = await begin('idle');
    const { id } = await asked(session);
    const idle = await until('nothing runs', async () => {
      const { raw } = await turnHandle(at, `${session}/1`).describe();
      return (raw.pendingActivities ?? []).length === 0;
    });
    expect(idle).toBe(true);
    expect(await callStates(session)).toEqual(['in_doubt']);
    await answer(id, 'happened');
    await at.ended(session);
  });

  it('a cancel ends the turn ABORTED; the effect stays unknown, and the answer comes too late', async () => {
    const { session, keys } = await begin('cancelled');
    const { id } = await asked(session);
    // The question is in the store a moment before the turn hears of it.
    await until('the turn waits', async () => (await callStates(session)).includes('in_doubt'));
    await cancelTurn(at, `${session}/1`, 'pat');
    expect(await at.ended(session)).toMatchObject({
      endReason: 'ABORTED',
      endDetail: 'user_cancel',
      endPhase: 'waiting',
    });
    expect(await left(session)).toMatchObject({ state: 'unknown' });
    expect(await answer(id, 'happened')).toEqual({ kind: 'stale', why: 'turn_ended' });
    expect(await listed(session)).toEqual([]);
    const results = (await at.transcript(session)).flatMap((each) => (each.kind === 'tool_result' ? [each.text] : []));
    expect(results).toEqual([
      'Interrupted while it ran: whether it took effect is not known. Check the state of things before you repeat it.',
    ]);
    expect(keys).toHaveLength(1);
  });

  it('nobody answers in time: the turn ends over it, and the question stays', { timeout: 60_000 }, async () => {
    const { session, keys } = await begin('expired', lost, 'hasty');
    await asked(session);
    expect(await at.ended(session, 1, 50_000)).toMatchObject({
      endReason: 'INTERRUPTED',
      endDetail: 'unknown_outcome',
    });
    expect((await left(session)).told).toEqual([
      'call.started',
      'effect.settled unknown by reconcile',
      'effect.asked',
      'effect.unanswered',
      'call.finished unknown_ends_turn',
      'turn.ended',
    ]);
    expect(await listed(session)).toMatchObject([{ expiresAt: null }]);
    expect(keys).toHaveLength(1);
  });
});

describe.concurrent('after the turn has ended over it, a person says that', () => {
  it.each([
    [
      'happened',
      'settled_done',
      /^About the call of risky \(.*it took effect\. Do not repeat it; go on\. They add: #7$/,
    ],
    [
      'absent',
      'settled_absent',
      /it did not take effect\. Make it again if it is still needed, and go on\. They add: #7$/,
    ],
    ['again', 'abandoned', /a person allows you to make it once more\. Then go on\. They add: #7$/],
  ] as const)(
    '%s: the ledger learns it, and a new turn of the job goes on',
    { timeout: 60_000 },
    async (what, state, text) => {
      const { job, session, keys } = await begin(`after the end: ${what}`, lost, 'alone');
      await at.ended(session, 1, 50_000);
      expect(await runs.get('default', job)).toMatchObject({ state: 'needs_attention' });
      const { id } = await asked(session);
      expect(await answer(id, what, '#7')).toEqual({ kind: 'recorded' });
      expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED' });
      const { told, ...rest } = await left(session);
      expect(rest).toMatchObject({ status: 'unknown_ends_turn', state });
      expect(told.slice(-3)).toEqual([
        `approval.answered ${what} by pat`,
        `effect.settled ${state} by pat`,
        'turn.ended',
      ]);
      const said = (await at.transcript(session)).flatMap((each) => (each.kind === 'user' ? [each.text] : []));
      expect(said).toEqual([`after the end: ${what}`, expect.stringMatching(text)]);
      expect(await answer(id, 'absent')).toEqual({ kind: 'answered_before', answer: what, by: 'pat' });
      expect(await listed(session)).toEqual([]);
      expect(keys).toHaveLength(1);
      // The job goes on with that turn, and is done with it.
      const shown = await runs.show('default', job);
      expect([shown?.job.state, shown?.job.turn, shown?.turns.map(({ n }) => n)]).toEqual([
        'done',
        `${session}/2`,
        [1, 2],
      ]);
    },
  );

  it('nothing yet: a turn that was killed in the middle of a call asks as well', { timeout: 60_000 }, async () => {
    let began = () => {};
    const running = new Promise<void>((resolve) => (began = resolve));
    const { job, session } = await begin('terminated', async (_n, { signal }) => {
      began();
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      return await lost();
    });
    await running;
    await turnHandle(at, `${session}/1`).terminate('the test kills it');
    expect(await at.ended(session, 1, 50_000)).toMatchObject({ endReason: 'INTERRUPTED', endDetail: 'terminated' });
    const { id } = await until('it is asked about', async () => (await listed(session))[0], 50_000);
    await answer(id, 'happened');
    expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED' });
    expect(await runs.get('default', job)).toMatchObject({ state: 'done' });
  });
});
