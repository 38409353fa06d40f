import { eq } from 'drizzle-orm';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Deps } from '../../activities/deps.ts';
import { temporalEngine } from '../../activities/engine/temporal-engine.ts';
import { storeCancel } from '../../activities/store/cancels.ts';
import { StreamNotifier } from '../../activities/store/notify.ts';
import { turn as turnTable } from '../../activities/store/schema.ts';
import { ChainCache } from '../../activities/store/transcript.ts';
import { endTurn } from '../../activities/turn/end-turn.ts';
import { callTools, hold, paced, type Reply, say, status } from '../../testing/index.ts';
import { turnWorkflowId } from '../../workflows/messages.ts';
import { conversations, userTexts } from '../support/conversations.ts';
import { cancelTurn, cancelsOf, closedStatus, inMs, only, sessionHandle, turnHandle } from '../support/engine-facts.ts';
import { note } from '../support/numbers.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

const talk = conversations();
let at: TestHouse;
beforeAll(async () => {
  at = await testHouse({
    rules: talk.rules,
    expectKey: true,
    others: [
      { name: 'three-steps', limits: { maxSteps: 3 } },
      { name: 'few-tokens', limits: { maxTokens: 250 } },
      { name: 'half-second', limits: { maxRunningMs: 500 } },
      { name: 'too-late', limits: { notAfterMs: 1_000 } },
    ],
  });
});
afterAll(async () => {
  await at.close();
});

const reading = (pace: Reply['pace'] = {}) => paced(callTools([{ name: 'list_files', arguments: {} }]), pace);

/** Type and message of the failure a turn's workflow closed with. */
async function failureOf(turn: string) {
  const { events } = await turnHandle(at, turn).fetchHistory();
  const failure = events?.at(-1)?.workflowExecutionFailedEventAttributes?.failure;
  return {
    type: failure?.applicationFailureInfo?.type,
    nonRetryable: failure?.applicationFailureInfo?.nonRetryable,
    message: failure?.message,
  };
}

describe.concurrent('a limit that nobody asked for', () => {
  async function runInto(agent: string, play: () => Reply) {
    talk.on(agent, play);
    const { session } = await at.submit(agent, { agent });
    const end = await at.ended(session);
    // The engine has no status for a limit: the turn asks for its own cancel once the end is stored.
    expect(await closedStatus(at, turnWorkflowId(`${session}/1`))).toBe('CANCELLED');
    const events = await at.events(session);
    expect(only(events, 'turn.ended')).toHaveLength(1);
    expect(only(events, 'turn.ended')[0]).toMatchObject({ by: null, why: null, recordedBy: 'turn' });
    expect(await cancelsOf(at, `${session}/1`)).toEqual([]);
    // Steps that were over long ago hear the cancel too; none of them may start its cleanup deadline.
    const { events: history } = await turnHandle(at, `${session}/1`).fetchHistory();
    expect(history?.filter((event) => event.timerStartedEventAttributes)).toEqual([]);
    return { end, requests: talk.requestsOf(at.provider, agent).length, transcript: await at.transcript(session) };
  }

  it('max_steps: where a sample would follow the third tool round', async () => {
    const { end, requests, transcript } = await runInto('three-steps', () => reading());
    expect(end).toMatchObject({ endReason: 'ABORTED', endDetail: 'max_steps', endDecidedBy: 'runtime', endStep: 3 });
    expect(end.endSignal).toEqual({ name: 'limit', limit: 'steps', allowed: 3, used: 3 });
    expect(requests).toBe(3);
    // The results of the last round are kept, and nothing was cut.
    expect(transcript.at(-1)).toMatchObject({ kind: 'tool_result', isError: false });
  });

  it('tokens: used up means spent ≥ limit', async () => {
    const { end, requests } = await runInto('few-tokens', () => reading());
    expect(end).toMatchObject({ endReason: 'ABORTED', endDetail: 'budget', endDecidedBy: 'runtime', endStep: 3 });
    expect(end.endSignal).toEqual({ name: 'limit', limit: 'tokens', allowed: 250, used: 330 });
    expect(end.endUsage).toMatchObject({ inputTokens: 300, outputTokens: 30, complete: true });
    expect(requests).toBe(3);
  });

  it('running time', async () => {
    const { end, requests } = await runInto('half-second', () => reading({ beforeHeadersMs: 600 }));
    expect(end).toMatchObject({ endReason: 'ABORTED', endDetail: 'deadline', endDecidedBy: 'runtime', endStep: 1 });
    expect(end.endSignal).toMatchObject({ name: 'limit', limit: 'running_ms', allowed: 500 });
    expect(end.endSignal?.name === 'limit' && end.endSignal.used).toBeGreaterThanOrEqual(600);
    expect(requests).toBe(1);
  });

  it('an absolute end that is over before the first sample', async () => {
    const { end, requests } = await runInto('too-late', () => reading());
    expect(end).toMatchObject({ endReason: 'ABORTED', endDetail: 'deadline', endStep: 0 });
    expect(end.endSignal).toMatchObject({ name: 'limit', limit: 'not_after', allowed: 1_000 });
    expect(requests).toBe(0);
  });
});

describe.concurrent('a provider that refuses', () => {
  it('with 400: one request, ERROR/invalid_request, Failed with a dotted type and our own sentence', async () => {
    talk.on('refused', () => status(400, { error: { message: 'no such thing as secret-7' } }));
    const { session } = await at.submit('refused');
    const end = await at.ended(session);
    expect(end).toMatchObject({
      endReason: 'ERROR',
      endDetail: 'invalid_request',
      endDecidedBy: 'runtime',
      endSignal: { name: 'provider_answer', status: 400 },
    });
    expect(await closedStatus(at, turnWorkflowId(`${session}/1`))).toBe('FAILED');
    expect(await failureOf(`${session}/1`)).toEqual({
      type: 'turn.error.invalid_request',
      nonRetryable: true,
      message: 'The turn ended; its end row says why.',
    });
    expect(talk.requestsOf(at.provider, 'refused')).toHaveLength(1);
    // The session lives on: the next input gets its own turn.
    talk.on('refused', () => say('Now it works.'));
    await at.send(session, 'prompt', 'again');
    expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED' });
  });

  it('with 401 for ever: three more tries after 1, 2 and 4 s, then ERROR/auth', async () => {
    talk.on('locked out', () => status(401, { error: { message: 'bad key' } }));
    const { session } = await at.submit('locked out');
    const end = await at.ended(session);
    expect(end).toMatchObject({
      endReason: 'ERROR',
      endDetail: 'auth',
      endDecidedBy: 'runtime',
      endSignal: { name: 'provider_answer', cause: 'auth', status: 401 },
    });
    expect(await closedStatus(at, turnWorkflowId(`${session}/1`))).toBe('FAILED');
    expect((await failureOf(`${session}/1`)).type).toBe('turn.error.auth');
    expect(talk.requestsOf(at.provider, 'locked out')).toHaveLength(4);
    const { events } = await turnHandle(at, `${session}/1`).fetchHistory();
    const rests = (events ?? []).flatMap(({ timerStartedEventAttributes: timer }) =>
      timer ? [inMs(timer.startToFireTimeout)] : [],
    );
    // A rest is counted from the answer on, so a slow commit shortens it.
    expect(rests.map((ms) => Math.ceil(ms / 1_000))).toEqual([1, 2, 4]);
  });
});

// An activity that commits and then loses its answer runs again: it must find its own end, not a stranger's.
it('is written once, and the attempt that repeats it succeeds; another run is refused', async () => {
  talk.on('repeated end', () => say('Done.'));
  const { session } = await at.submit('repeated end');
  const turn = `${session}/1`;
  await at.ended(session);
  await closedStatus(at, turnWorkflowId(turn));
  const before = await at.events(session);
  const { runId } = await turnHandle(at, turn).describe();
  const { database, temporal: client, taskQueue } = at.house;
  const deps: Pick<Deps, 'database' | 'chains' | 'notifier' | 'engine' | 'log'> = {
    database,
    chains: new ChainCache(),
    notifier: new StreamNotifier(database.pool),
    engine: temporalEngine(client, taskQueue),
    log: pino({ level: 'silent' }),
  };
  const end = {
    reason: 'COMPLETED',
    detail: 'final_answer',
    decidedBy: 'model',
    signal: { name: 'model_stop' },
    phase: 'ending',
  } as const;
  const request = (run: string) => ({
    fence: { turn, run, isReset: false },
    end,
    step: 0,
    runningMs: 0,
    answer: null,
    contract: null,
  });
  await endTurn(deps as Deps, request(runId));
  await expect(endTurn(deps as Deps, request('another-run'))).rejects.toMatchObject({ code: 'turn.fenced' });
  expect(only(await at.events(session), 'turn.ended')).toEqual(only(before, 'turn.ended'));
});

describe.concurrent('killed without a word:', () => {
  it('a turn: INTERRUPTED/terminated within a minute, by whom and why; the session takes the next input', {
    timeout: 90_000,
  }, async () => {
    const stop = hold();
    talk.on('killed turn', (request) =>
      userTexts(request).length === 1 ? paced(say('One two three.'), { hold: stop, holdAt: 3 }) : say('I am back.'),
    );
    const { session } = await at.submit('killed turn');
    await stop.reached;
    const queued = await at.send(session, 'prompt', 'the next one');
    const killed = Date.now();
    await turnHandle(at, `${session}/1`).terminate('out of patience');
    const end = await at.ended(session, 1, 60_000);
    note('terminate to INTERRUPTED, ms', Date.now() - killed);
    expect(end).toMatchObject({
      endReason: 'INTERRUPTED',
      endDetail: 'terminated',
      endDecidedBy: 'user',
      endSignal: { name: 'engine', event: 'terminated' },
      endBy: at.house.temporal.options.identity,
      endWhy: 'out of patience',
      recordedBy: 'recovery',
    });
    const next = await at.ended(session, 2);
    expect(next).toMatchObject({ endReason: 'COMPLETED', input: queued });
    const events = await at.events(session);
    expect(only(events, 'turn.ended')).toHaveLength(2);
    expect(only(events, 'stream.ended', `${session}/1`).map(({ reason }) => reason)).toEqual(['lost']);
    expect((await at.transcript(session)).map(({ kind }) => kind)).toEqual([
      'user',
      'interruption',
      'user',
      'assistant',
    ]);
  });

  it('a session, while its turn runs: the turn goes on, and a later input starts the session again', {
    timeout: 60_000,
  }, async () => {
    const stop = hold();
    talk.on('killed session', (request) =>
      userTexts(request).length === 1 ? paced(say('Slow.'), { hold: stop, holdAt: 1 }) : say('Quick.'),
    );
    const { session } = await at.submit('killed session');
    await stop.reached;
    await sessionHandle(at, session).terminate('a test');
    await at.send(session, 'prompt', 'who is there?');
    await until(
      'a new driver has adopted the turn',
      async () => (await sessionHandle(at, session).describe()).status.name === 'RUNNING',
    );
    stop.release();
    expect(await at.ended(session, 1)).toMatchObject({ endReason: 'COMPLETED' });
    expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED' });
    const turns = await at.house.database.db.select().from(turnTable).where(eq(turnTable.session, session));
    expect(turns).toHaveLength(2);
    expect(talk.requestsOf(at.provider, 'killed session')).toHaveLength(2);
  });

  it('a session and its turn: recovery settles the turn and wakes the session for what is queued', {
    timeout: 90_000,
  }, async () => {
    const stop = hold();
    talk.on('both killed', (request) =>
      userTexts(request).length === 1 ? paced(say('Slow.'), { hold: stop, holdAt: 1 }) : say('Quick.'),
    );
    const { session } = await at.submit('both killed');
    await stop.reached;
    await at.send(session, 'prompt', 'left in the queue');
    await sessionHandle(at, session).terminate('a test');
    await turnHandle(at, `${session}/1`).terminate('a test');
    // Nobody signals: only the sweep can find this.
    expect(await at.ended(session, 1, 60_000)).toMatchObject({
      endReason: 'INTERRUPTED',
      endDetail: 'terminated',
      recordedBy: 'recovery',
    });
    expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED' });
  });

  it('whoever asked for a cancel, before the engine knew of it: recovery passes it on', {
    timeout: 60_000,
  }, async () => {
    const stop = hold();
    talk.on('cancel half asked', () => paced(say('One two.'), { hold: stop, holdAt: 2 }));
    const { session } = await at.submit('cancel half asked');
    await stop.reached;
    const request = {
      turn: `${session}/1`,
      id: 'half',
      by: 'a person',
      why: null,
      decidedBy: 'user',
      detail: 'user_cancel',
    } as const;
    await storeCancel(at.house.database.db, request);
    expect(await at.ended(session, 1, 45_000)).toMatchObject({
      endReason: 'ABORTED',
      endDetail: 'user_cancel',
      endBy: 'a person',
    });
    expect(await cancelsOf(at, `${session}/1`)).toMatchObject([{ id: 'half', answer: 'took' }]);
  });

  it('a turn that was cancelled before it was killed: one end', { timeout: 90_000 }, async () => {
    talk.on('cut and killed', () =>
      callTools([{ name: 'shell', arguments: { command: 'trap "" TERM; while :; do sleep 0.05; done' } }]),
    );
    const { session } = await at.submit('cut and killed');
    await until('the command runs', async () => only(await at.events(session), 'call.started').length === 1);
    const { id } = await cancelTurn(at, `${session}/1`, 'first a cancel');
    await turnHandle(at, `${session}/1`).terminate('then a kill');
    expect(await at.ended(session, 1, 60_000)).toMatchObject({
      endReason: 'INTERRUPTED',
      endDetail: 'terminated',
      endWhy: 'then a kill',
    });
    expect(only(await at.events(session), 'turn.ended')).toHaveLength(1);
    // Nobody was left to write the batch's end: recovery did, once.
    expect(only(await at.events(session), 'batch.ended')).toMatchObject([
      { reason: 'cancelled', detail: 'terminated', decidedBy: 'user', calls: 1 },
    ]);
    expect(await cancelsOf(at, `${session}/1`)).toMatchObject([{ id, answer: 'already_ended' }]);
  });
});
