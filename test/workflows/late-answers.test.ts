import { asc, eq } from 'drizzle-orm';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { closeForgotten } from '../../activities/store/answers.ts';
import { call, effect, session as sessionTable, turn } from '../../activities/store/schema.ts';
import { defineTool } from '../../activities/tools/define-tool.ts';
import { createRegistry } from '../../activities/tools/registry.ts';
import { type ApprovalReply, createRuns, type OpenApproval, type Runs } from '../../client/index.ts';
import type { HookAnswer, HookInput } from '../../activities/gate/hook-types.ts';
import { callTools, type ChatRequest, countToolResults, type Reply, say } from '../../testing/index.ts';
import type { RunningWorker } from '../../worker/start-worker.ts';
import { only } from '../support/engine-facts.ts';
import { userTexts } from '../support/conversations.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

let at: TestHouse;
let runs: Runs;
let worker: RunningWorker;

/** What the world saw: one entry for each time that a call really ran. */
const made: string[] = [];
let runsForEver = false;

const deploy = defineTool({
  name: 'deploy',
  description: 'Deploys.',
  input: z.strictObject({ to: z.string() }),
  effect: 'once',
  onUnknown: 'tell',
  subject: ({ to }) => ({ kind: 'text', text: to }),
  run: async ({ to }, { signal }) => {
    made.push(to);
    if (runsForEver) await aborted(signal);
    return { isError: false, text: `deployed to ${to}` };
  },
});

/** What hooks were asked and told. */
const screened: HookInput[] = [];
const denied: HookInput[] = [];

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('cut')), { once: true }));
}

function rules(request: ChatRequest): Reply {
  const [first] = userTexts(request);
  if (countToolResults(request) > 0) return say('Done.');
  return callTools([
    { name: 'list_files', arguments: { path: '.' } },
    { name: 'deploy', arguments: { to: first } },
    { name: 'deploy', arguments: { to: `${first} again` } },
  ]);
}

function screen(asked: HookInput): HookAnswer | null {
  screened.push(asked);
  return String(asked.text).includes('bad word') ? { deny: 'Mind your words.' } : null;
}

beforeAll(async () => {
  at = await testHouse({
    rules,
    worker: false,
    tools: [deploy],
    definition: {
      hooks: [
        { event: 'PermissionDenied', tool: 'deploy', run: (told) => void denied.push(told) },
        { event: 'UserPromptSubmit', run: screen },
      ],
    },
    agent: { attended: true, permissions: { mode: 'default', expiryMs: 1_000, onExpiry: 'block' } },
  });
  runs = createRuns(at.house);
  worker = await at.startWorker();
});
afterEach(() => {
  made.length = 0;
  runsForEver = false;
});
afterAll(async () => {
  await at.close();
});

interface Blocked {
  readonly session: string;
  readonly job: string;
  readonly approval: OpenApproval;
}

/** A session whose first turn has ended BLOCKED over its first deploy. */
async function blocked(name: string): Promise<Blocked> {
  const { session, job } = await at.submit(name);
  const end = await at.ended(session);
  expect(end).toMatchObject({ endReason: 'BLOCKED', endDetail: 'awaiting_approval', endDecidedBy: 'runtime' });
  const approval = (await runs.approvals('default')).find((each) => each.session === session);
  if (!approval) throw new Error('the wait is not open any more');
  expect(end.endSignal).toEqual({ name: 'approval', id: approval.id });
  return { session, job, approval };
}

const answer = (id: string, reply: Partial<ApprovalReply> = {}) =>
  runs.answer('default', id, { answer: 'approved', by: 'pat', ...reply });

const said = async (session: string) =>
  (await at.transcript(session)).map((message) =>
    message.kind === 'user' || message.kind === 'tool_result'
      ? `${message.kind}: ${message.text.split('\n')[0]}`
      : message.kind,
  );

const STILL =
  'tool_result: Still waiting: nobody has approved this call yet. It has not run, and the work stops here until somebody decides.';
const FIRST_TURN = (name: string) => [
  `user: ${name}`,
  'assistant',
  'tool_result: (The folder is empty.)',
  STILL,
  'tool_result: Not started: nobody has approved an earlier call of this batch yet.',
];

async function ledger(session: string): Promise<string[]> {
  const rows = await at.house.database.db
    .select({ effect })
    .from(effect)
    .innerJoin(call, eq(call.key, effect.key))
    .innerJoin(turn, eq(turn.id, call.turn))
    .where(eq(turn.session, session))
    .orderBy(asc(call.ordinal));
  return rows.map((row) => `${row.effect.turn.split('/')[1]} ${row.effect.state}`);
}

const turnsOf = (session: string) => at.house.database.db.$count(turn, eq(turn.session, session));

describe('a turn that ended BLOCKED leaves its question open', () => {
  it('a late yes opens the next turn with the call, which is made once, under its old key; its outcome is told, not a second result', async () => {
    const { session, approval } = await blocked('late');
    expect(made).toEqual([]);
    expect(await ledger(session)).toEqual(['1 intended', '1 settled_absent']);
    expect(await answer(approval.id)).toEqual({ kind: 'recorded' });
    expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED', endDetail: 'final_answer', endStep: 0 });
    expect(made).toEqual(['late']);
    expect(await said(session)).toEqual([
      ...FIRST_TURN('late'),
      'user: The call of deploy that waited for approval (late) was approved by pat. It has been made now. All that follows is what the tool returned:',
      'assistant',
    ]);
    const told = (await at.transcript(session)).findLast((message) => message.kind === 'user');
    expect(told).toMatchObject({ source: 'call_back', text: expect.stringMatching(/returned:\ndeployed to late$/) });
    expect(await ledger(session)).toEqual(['2 succeeded', '1 settled_absent']);
    const events = (await at.events(session)).filter(
      ({ turn: of, event }) => of === `${session}/2` && event.layer !== 'driver',
    );
    expect(events.map(({ event }) => event.kind)).toEqual([
      'turn.opened',
      'call.started',
      'call.finished',
      'input.joined',
      'sample.started',
      'stream.ended',
      'turn.ended',
    ]);
    const [asked] = only(await at.events(session), 'approval.opened');
    expect(only(await at.events(session), 'call.started')).toMatchObject([{ key: asked?.key }]);
  });

  it('the job that was blocked goes on with it, and is done when that turn is', async () => {
    const { session, job, approval } = await blocked('job');
    expect(await runs.get('default', job)).toMatchObject({ state: 'blocked', turn: `${session}/1` });
    await answer(approval.id);
    await at.ended(session, 2);
    expect(await runs.get('default', job)).toMatchObject({ state: 'done', turn: `${session}/2`, text: 'Done.' });
    const shown = await runs.show('default', job);
    expect(shown?.turns.map(({ n }) => n)).toEqual([1, 2]);
    expect(shown?.effects.map(({ state }) => state).toSorted()).toEqual(['settled_absent', 'succeeded']);
  });

  it('a second yes is told that the first one stands, and nothing runs again', async () => {
    const { session, approval } = await blocked('twice');
    await answer(approval.id);
    await at.ended(session, 2);
    expect(await answer(approval.id, { by: 'sam' })).toEqual({
      kind: 'answered_before',
      answer: 'approved',
      by: 'pat',
    });
    expect(made).toEqual(['twice']);
    expect(await turnsOf(session)).toBe(2);
  });

  it('twenty late answers at once: one is recorded, and the call runs at most once', async () => {
    const { session, approval } = await blocked('race');
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        answer(approval.id, { answer: n % 2 ? 'approved' : 'rejected', by: `p${n}` }),
      ),
    );
    expect(answers.filter((each) => each?.kind === 'recorded')).toHaveLength(1);
    const told = answers.flatMap((each) => (each?.kind === 'answered_before' ? [each.answer] : []));
    expect(told).toHaveLength(19);
    await at.ended(session, 2);
    expect(made).toEqual(told[0] === 'approved' ? ['race'] : []);
    expect(await turnsOf(session)).toBe(2);
  });

  it('a late no is told to the model, and the call never runs', async () => {
    const { session, approval } = await blocked('no');
    expect(await answer(approval.id, { answer: 'rejected' })).toEqual({ kind: 'recorded' });
    expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED' });
    expect(await said(session)).toEqual([
      ...FIRST_TURN('no'),
      'user: The call of deploy that waited for approval (no) was rejected by pat. It has not run, and will not.',
      'assistant',
    ]);
    expect(await answer(approval.id)).toEqual({ kind: 'answered_before', answer: 'rejected', by: 'pat' });
    expect(made).toEqual([]);
    expect(await ledger(session)).toEqual(['1 settled_absent', '1 settled_absent']);
  });

  it('a late message instead of an answer is told with the call that it is about', async () => {
    const { session, approval } = await blocked('words');
    await answer(approval.id, { answer: 'message', text: 'Wait for Monday.' });
    await at.ended(session, 2);
    const told = (await at.transcript(session)).findLast((message) => message.kind === 'user');
    expect(told).toMatchObject({
      text: 'The call of deploy that waited for approval (words) was not approved and has not run. Instead by pat:\nWait for Monday.',
    });
    expect(made).toEqual([]);
  });

  const deniedIn = (session: string) => denied.filter((told) => told.session === session);
  const REFUSED = 'It has not run, and will not.';

  it.each([
    ['rejected', undefined],
    ['message', 'Not today.'],
  ] as const)('hooks are told of a call that was refused late (%s), once, as in its turn', async (how, text) => {
    const { session, approval } = await blocked(`told ${how}`);
    expect(deniedIn(session)).toEqual([]);
    await answer(approval.id, { answer: how, text });
    await at.ended(session, 2);
    await until('it is told', () => deniedIn(session).length > 0);
    await at.send(session, 'prompt', 'go on');
    await at.ended(session, 3);
    expect(deniedIn(session)).toEqual([
      {
        event: 'PermissionDenied',
        id: expect.stringMatching(/^denied\/[0-9a-f]{64}$/),
        session,
        turn: `${session}/1`,
        workspace: expect.any(String),
        by: 'person',
        tool: 'deploy',
        effect: 'once',
        args: { to: `told ${how}` },
        status: 'denied',
        result: 'It did not run.',
        note: how,
      },
    ]);
  });

  it('hooks are asked about a message that is typed late; one that they let pass is told', async () => {
    const { session, approval } = await blocked('polite');
    await answer(approval.id, { answer: 'message', text: 'Wait for Monday.' });
    await at.ended(session, 2);
    expect(screened.filter((asked) => asked.session === session)).toMatchObject([
      { source: 'prompt', text: 'polite', sender: null, turn: null },
      { source: 'steer', text: 'Wait for Monday.', sender: 'pat', turn: null },
    ]);
    expect(JSON.stringify(await at.transcript(session))).toContain('Wait for Monday.');
  });

  it('of one that they deny, the no is left, as in its turn', async () => {
    const { session, job, approval } = await blocked('rude');
    await answer(approval.id, { answer: 'message', text: 'a bad word' });
    expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED' });
    expect(made).toEqual([]);
    expect((await said(session)).slice(5)).toEqual([
      `user: The call of deploy that waited for approval (rude) was rejected by pat. ${REFUSED}`,
      'assistant',
    ]);
    expect(JSON.stringify(await at.transcript(session))).not.toContain('bad word');
    expect(only(await at.events(session), 'input.dropped')).toMatchObject([
      { status: 'hook_blocked', by: null, why: 'Mind your words.' },
    ]);
    expect(await runs.get('default', job)).toMatchObject({ state: 'done', turn: `${session}/2` });
    expect(screened.filter((asked) => asked.session === session)).toHaveLength(2);
    await until('the refusal is told', () => deniedIn(session).length > 0);
  });

  it('edited arguments of a late yes are what runs', async () => {
    const { session, approval } = await blocked('edit');
    await answer(approval.id, { editedArguments: JSON.stringify({ to: 'staging' }) });
    await at.ended(session, 2);
    expect(made).toEqual(['staging']);
  });
});

describe('what a late yes does not open', () => {
  // The yes was for another situation: what it was asked about is not in front of the model any more.
  it('after a rewind it is refused; an archived session refuses it too, and leaves the question open', async () => {
    const { session, approval } = await blocked('rewound');
    await runs.archive('default', session, { archived: true, by: 'pat' });
    expect(await answer(approval.id)).toEqual({ kind: 'stale', why: 'archived' });
    await runs.archive('default', session, { archived: false, by: 'pat' });
    await runs.rewind('default', session, { to: 'start', by: 'pat' });
    expect(await answer(approval.id)).toEqual({ kind: 'stale', why: 'moved_on' });
    await at.send(session, 'prompt', 'something else');
    await at.ended(session, 2);
    expect(made).toEqual([]);
  });

  it('after the session has gone on it is refused in a sentence, and nothing is listed any more', async () => {
    const { session, approval } = await blocked('moved');
    await at.send(session, 'prompt', 'something else');
    await at.ended(session, 2);
    expect(await answer(approval.id)).toEqual({ kind: 'stale', why: 'moved_on' });
    expect((await runs.approvals('default')).filter((each) => each.session === session)).toEqual([]);
    expect(made).toEqual([]);
  });

  it('after a cancel of its turn it is refused', async () => {
    const job = await at.submit('cancelled');
    const { id } = await until('the question', async () =>
      (await runs.approvals('default')).find((each) => each.session === job.session),
    );
    await runs.cancel('default', job.job, { by: 'pat' });
    expect(await at.ended(job.session)).toMatchObject({ endReason: 'ABORTED', endDetail: 'user_cancel' });
    expect(await answer(id)).toEqual({ kind: 'stale', why: 'turn_ended' });
    expect(made).toEqual([]);
  });

  // Each guard has its own line: a person's yes answers an ask and opens nothing else.
  it('it is judged once more: a session that plans meanwhile makes no such call', async () => {
    const { session, approval } = await blocked('plan');
    const { db } = at.house.database;
    await db.update(sessionTable).set({ plan: true }).where(eq(sessionTable.id, session));
    await answer(approval.id);
    await at.ended(session, 2);
    expect((await said(session)).slice(5)).toEqual([
      expect.stringMatching(
        /^user: .* was approved by pat\. But it has not run: The call of deploy did not run: this session is planning/,
      ),
      'assistant',
    ]);
    expect(made).toEqual([]);
    expect(await ledger(session)).toEqual(['1 settled_absent', '1 settled_absent']);
  });

  it('a tool that went in a deploy meanwhile: the model is told, and the session goes on without it', async () => {
    const { session, approval } = await blocked('gone');
    await worker.stop();
    const registry = createRegistry(
      at.config.registry.names.flatMap((name) => {
        const found = at.config.registry.lookup(name);
        return found.ok && name !== 'deploy' ? [found.tool] : [];
      }),
    );
    const without = await at.startWorker({ registry });
    await answer(approval.id);
    expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED' });
    expect((await said(session)).slice(5)).toEqual([
      'user: The call of deploy that waited for approval (gone) was approved by pat. But it has not run: This tool no longer exists, so the approved call did not run.',
      'assistant',
    ]);
    await at.send(session, 'prompt', 'and then?');
    expect(await at.ended(session, 3)).toMatchObject({ endReason: 'COMPLETED' });
    await without.stop();
    worker = await at.startWorker();
    expect(made).toEqual([]);
  });

  it('nobody in all the time there is: it is closed, and the model is told', async () => {
    const { session, approval } = await blocked('forgotten');
    const other = await blocked('young');
    const { db } = at.house.database;
    await db
      .update(turn)
      .set({ endedAt: new Date(Date.now() - 86_400_000) })
      .where(eq(turn.id, `${session}/1`));
    expect(await closeForgotten(db, 3_600_000)).toEqual([session]);
    expect(await answer(approval.id)).toEqual({ kind: 'answered_before', answer: 'expired', by: null });
    await at.send(session, 'steer', 'go on');
    await at.ended(session, 2);
    expect((await said(session)).slice(5)).toContain(
      'user: The call of deploy that waited for approval (forgotten) was not approved by anybody in all this time. It has not run, and will not.',
    );
    expect((await runs.approvals('default')).map(({ id }) => id)).toContain(other.approval.id);
  });
});

describe('whatever happens around it', () => {
  it('answered while no worker runs, the call is made by the next one, and before anything that came later', async () => {
    const { session, approval } = await blocked('restart');
    await worker.stop();
    const prompt = await at.send(session, 'prompt', 'and another thing');
    expect(await answer(approval.id)).toEqual({ kind: 'recorded' });
    worker = await at.startWorker();
    expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED' });
    expect(await at.ended(session, 3)).toMatchObject({ endReason: 'COMPLETED', input: prompt });
    expect(made).toEqual(['restart']);
    expect((await said(session)).slice(5)).toEqual([
      expect.stringMatching(/^user: The call of deploy .* It has been made now\./),
      'assistant',
      'user: and another thing',
      'assistant',
    ]);
  });

  it('declined while no worker runs: the next one tells the model, and the call never ran', async () => {
    const { session, approval } = await blocked('decline');
    await worker.stop();
    await answer(approval.id, { answer: 'rejected' });
    worker = await at.startWorker();
    expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED' });
    expect(made).toEqual([]);
  });

  // Trap: the input that opened the turn is consumed by its end, and nothing would say that the call may have acted.
  it('a cancel while it runs: the transcript says that its outcome is not known', async () => {
    const { session, approval } = await blocked('cut');
    runsForEver = true;
    await answer(approval.id);
    await until('it runs', () => Promise.resolve(made.length === 1));
    await at.house.temporal.workflow.getHandle(`turn/${session}/2`).cancel();
    expect(await at.ended(session, 2)).toMatchObject({ endDetail: 'user_cancel', endPhase: 'tools' });
    expect((await said(session)).slice(5)).toEqual([
      expect.stringMatching(/^user: The call of deploy that waited for approval \(cut\) was approved by pat\./),
      'interruption',
    ]);
    expect(JSON.stringify(await at.transcript(session))).toContain('whether it took effect is not known');
    expect(await ledger(session)).toEqual(['2 unknown', '1 settled_absent']);
  });
});
