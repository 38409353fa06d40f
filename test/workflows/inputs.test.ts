import { setTimeout as sleep } from 'node:timers/promises';
import { asc, eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { input } from '../../activities/store/schema.ts';
import { callTools, hold, paced, say } from '../../testing/index.ts';
import { look, turnState } from '../../workflows/messages.ts';
import { conversations, userTexts } from '../support/conversations.ts';
import { cancelTurn, only, sessionHandle, turnHandle } from '../support/engine-facts.ts';
import { note } from '../support/numbers.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

const talk = conversations();
let at: TestHouse;
beforeAll(async () => {
  at = await testHouse({ rules: talk.rules, expectKey: true });
});
afterAll(async () => {
  await at.close();
});

async function inputsOf(session: string) {
  return await at.house.database.db.select().from(input).where(eq(input.session, session)).orderBy(asc(input.seq));
}

/** The turn itself has heard of these, not only the store. */
async function forwarded(ids: readonly string[], session: string) {
  await until('the turn has the inputs', async () => {
    const { inbox } = await turnHandle(at, `${session}/1`).query(turnState);
    return ids.every((id) => inbox.includes(id));
  });
}

describe.concurrent('an input to a running turn', () => {
  it('that comes during a sample joins after it: one message each, in order, whatever its kind', async () => {
    const stop = hold();
    talk.on('joins', (request) =>
      userTexts(request).length === 1 ? paced(say('First answer.'), { hold: stop, holdAt: 1 }) : say('Second answer.'),
    );
    const { session } = await at.submit('joins');
    await stop.reached;
    const ids = [
      await at.send(session, 'steer', 'one'),
      await at.send(session, 'call_back', 'two'),
      await at.send(session, 'steer', 'three'),
    ];
    await forwarded(ids, session);
    stop.release();
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
    const requests = talk.requestsOf(at.provider, 'joins');
    expect(requests.map(({ body }) => userTexts(body))).toEqual([['joins'], ['joins', 'one', 'two', 'three']]);
    expect((await at.transcript(session)).map(({ kind }) => kind)).toEqual([
      'user',
      'assistant',
      'user',
      'user',
      'user',
      'assistant',
    ]);
    expect((await inputsOf(session)).map(({ status }) => status)).toEqual([
      'consumed',
      'consumed',
      'consumed',
      'consumed',
    ]);
    expect(
      only(await at.events(session), 'input.joined')
        .slice(1)
        .map(({ input: id }) => id),
    ).toEqual(ids);
  });

  it('that comes while tools run follows their results', async () => {
    const stop = hold();
    talk.on('between', (request) =>
      request.messages.some(({ role }) => role === 'tool')
        ? say('Done.')
        : paced(callTools([{ name: 'list_files', arguments: {} }]), { hold: stop, holdAt: 1 }),
    );
    const { session } = await at.submit('between');
    await stop.reached;
    await forwarded([await at.send(session, 'steer', 'mind the gap')], session);
    stop.release();
    await at.ended(session);
    expect((await at.transcript(session)).map(({ kind }) => kind)).toEqual([
      'user',
      'assistant',
      'tool_result',
      'user',
      'assistant',
    ]);
  });

  it('waits for idle if it is a prompt, and gets an end of its own', async () => {
    const stop = hold();
    talk.on('prompts', (request) =>
      userTexts(request).length === 1 ? paced(say('One.'), { hold: stop, holdAt: 1 }) : say('More.'),
    );
    const { session } = await at.submit('prompts');
    await stop.reached;
    const second = await at.send(session, 'prompt', 'second');
    const third = await at.send(session, 'prompt', 'third');
    stop.release();
    expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED', input: second });
    expect(await at.ended(session, 3)).toMatchObject({ endReason: 'COMPLETED', input: third });
    expect(talk.requestsOf(at.provider, 'prompts').map(({ body }) => userTexts(body).length)).toEqual([1, 2, 3]);
  });

  it('is dropped by a person’s cancel if it is a steer; a call-back waits for the next turn', async () => {
    const stop = hold();
    talk.on('dropped', (request) =>
      userTexts(request).length === 1 ? paced(say('One two three.'), { hold: stop, holdAt: 2 }) : say('Next.'),
    );
    const { session } = await at.submit('dropped');
    await stop.reached;
    const steer = await at.send(session, 'steer', 'never heard');
    const callBack = await at.send(session, 'call_back', 'a build has finished');
    await forwarded([steer, callBack], session);
    await cancelTurn(at, `${session}/1`, 'a person');
    expect(await at.ended(session)).toMatchObject({ endDetail: 'user_cancel' });
    await until('both have an outcome', async () => {
      const rows = await inputsOf(session);
      return (
        rows.find(({ id }) => id === steer)?.status === 'dropped_by_cancel' &&
        rows.find(({ id }) => id === callBack)?.status !== 'forwarded'
      );
    });
    expect(only(await at.events(session), 'input.dropped')).toMatchObject([
      { input: steer, status: 'dropped_by_cancel', by: 'a person', why: null },
    ]);
    // A person stopped the agent: what waits in the background may not wake it again; their next prompt does.
    await until('the driver has come to rest', async () => only(await at.events(session), 'driver.ended').length === 1);
    const prompt = await at.send(session, 'prompt', 'go on');
    expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED', input: prompt });
    await until(
      'the call-back is heard',
      async () => (await inputsOf(session)).find(({ id }) => id === callBack)?.status === 'consumed',
    );
    const heard = new Set(talk.requestsOf(at.provider, 'dropped').flatMap(({ body }) => userTexts(body)));
    expect(heard).not.toContain('never heard');
    expect(heard).toContain('a build has finished');
  });
});

/** Every accepted message reaches a visible outcome, once, whatever moment it comes at. */
it('hears 50 steers and call-backs sent around the ends of turns, each exactly once and in order', {
  timeout: 60_000,
}, async () => {
  const sessions = await Promise.all(
    Array.from({ length: 10 }, async (_, n) => {
      talk.on(`random ${n}`, () => paced(say('Ok.'), { beforeHeadersMs: Math.random() * 60 }));
      const { session } = await at.submit(`random ${n}`);
      await until('the first turn is open', async () => only(await at.events(session), 'turn.opened').length === 1);
      return session;
    }),
  );
  const sent = await Promise.all(
    sessions.map(async (session) => {
      const ids: string[] = [];
      for (let n = 0; n < 5; n += 1) {
        await sleep(Math.random() * 100);
        ids.push(await at.send(session, n % 2 === 0 ? 'steer' : 'call_back', `message ${n}`));
      }
      return ids;
    }),
  );
  let turns = 0;
  for (const [n, session] of sessions.entries()) {
    const rows = await until(`every input of ${session} is consumed`, async () => {
      const found = await inputsOf(session);
      return found.every(({ status }) => status === 'consumed') ? found : null;
    });
    const chain = await at.transcript(session);
    const heard = chain.flatMap((message) => (message.kind === 'user' ? [message.input] : []));
    expect(heard).toEqual([rows[0]?.id, ...(sent[n] ?? [])]);
    const events = await at.events(session);
    expect(only(events, 'input.joined')).toHaveLength(6);
    const opened = only(events, 'turn.opened').length;
    expect(only(events, 'turn.ended')).toHaveLength(opened);
    turns += opened;
  }
  note('turns for 10 prompts and 50 later messages', turns);
  expect(turns).toBeGreaterThan(10);
});

describe.concurrent('a session', () => {
  it('continues as new while a turn runs, and its next run adopts the turn', { timeout: 60_000 }, async () => {
    const stop = hold();
    talk.on('long session', (request) =>
      userTexts(request).length === 1 ? paced(say('One.'), { hold: stop, holdAt: 1 }) : say('Two.'),
    );
    const { session } = await at.submit('long session');
    await stop.reached;
    const handle = sessionHandle(at, session);
    const { runId } = await handle.describe();
    await until('a new run drives the session', async () => {
      const now = await handle.describe();
      if (now.runId !== runId) return true;
      // The engine does not let a run close over signals that it has not seen: a flood would hold it back.
      await Promise.all(Array.from({ length: now.historyLength < 500 ? 50 : 1 }, () => handle.signal(look)));
      return false;
    });
    const steer = await at.send(session, 'steer', 'through the new run');
    await forwarded([steer], session);
    stop.release();
    expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED' });
    expect(talk.requestsOf(at.provider, 'long session').map(({ body }) => userTexts(body).length)).toEqual([1, 2]);
    await at.send(session, 'prompt', 'next');
    expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED' });
    expect(only(await at.events(session), 'turn.opened')).toHaveLength(2);
  });

  it('says once that it has come to rest', async () => {
    talk.on('rests once', () => say('Done.'));
    const { session } = await at.submit('rests once');
    await at.ended(session);
    const idle = await until('the driver’s end', async () => {
      const found = only(await at.events(session), 'driver.ended');
      return found.length > 0 ? found : null;
    });
    expect(idle).toMatchObject([{ reason: 'queue_empty', decidedBy: 'runtime', signal: 'queue_empty' }]);
    for (let n = 0; n < 3; n += 1) await sessionHandle(at, session).signal(look);
    await at.send(session, 'prompt', 'once more');
    await at.ended(session, 2);
    await until('the second rest', async () => only(await at.events(session), 'driver.ended').length === 2);
  });
});
