import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { message } from '../../activities/store/schema.ts';
import { say } from '../../testing/index.ts';
import { turnWorkflowId } from '../../workflows/messages.ts';
import { conversations } from '../support/conversations.ts';
import { closedStatus, only } from '../support/engine-facts.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';

const REFUSED = 'words that the database refuses';

const talk = conversations();
let at: TestHouse;
beforeAll(async () => {
  at = await testHouse({ rules: talk.rules, worker: false });
  await at.house.database.db.execute(
    sql.raw(`alter table pawl.message add constraint refuses check (body::text not like '%${REFUSED}%')`),
  );
});
afterAll(() => at.close());

it('a write that the store refuses ends the turn ERROR/storage, be it what came in or what the model said; a missing message ends it ERROR/context_unusable', async () => {
  const first = await at.startWorker();
  talk.on('say it', () => say(`Here are ${REFUSED}.`));
  talk.on('be good', () => say('I am.'));
  const [refused, said, good] = await Promise.all([at.submit(REFUSED), at.submit('say it'), at.submit('be good')]);
  const fault = { endReason: 'ERROR', endDetail: 'storage', endDecidedBy: 'runtime', recordedBy: 'turn' };
  for (const { session } of [refused, said]) {
    expect(await at.ended(session)).toMatchObject({ ...fault, endSignal: { name: 'fault', type: 'store.refused' } });
    expect(await closedStatus(at, turnWorkflowId(`${session}/1`))).toBe('FAILED');
    expect(only(await at.events(session), 'turn.ended')).toHaveLength(1);
  }
  expect(talk.requestsOf(at.provider, REFUSED)).toEqual([]);
  expect(talk.requestsOf(at.provider, 'say it')).toHaveLength(1);

  // The worker's memory of the chain goes with it.
  expect(await at.ended(good.session)).toMatchObject({ endReason: 'COMPLETED' });
  await first.stop();
  const { db } = at.house.database;
  const [answer] = await db
    .select()
    .from(message)
    .where(eq(message.hash, (await at.ended(good.session)).head));
  await db.delete(message).where(eq(message.hash, answer!.parent));
  await at.send(good.session, 'prompt', 'and now?');
  await at.startWorker();
  expect(await at.ended(good.session, 2)).toMatchObject({
    endReason: 'ERROR',
    endDetail: 'context_unusable',
    endDecidedBy: 'runtime',
    endSignal: { name: 'fault', type: 'context.missing_parent' },
    endPhase: 'sampling',
  });
  expect(talk.requestsOf(at.provider, 'be good')).toHaveLength(1);
});
