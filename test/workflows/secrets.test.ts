import { asc, eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { delta } from '../../activities/store/schema.ts';
import { hold, paced, say } from '../../testing/index.ts';
import { conversations } from '../support/conversations.ts';
import { type TestHouse, testHouse } from '../support/test-house.ts';
import { until } from '../support/until.ts';

// The provider streams word by word, so the spaces have it come in three pieces.
const SECRET = 'split over three-words';

const talk = conversations();
let at: TestHouse;
beforeAll(async () => {
  process.env['PAWL_TEST_STREAM_TOKEN'] = SECRET;
  at = await testHouse({ rules: talk.rules });
});
afterAll(async () => {
  delete process.env['PAWL_TEST_STREAM_TOKEN'];
  await at.close();
});

// Trap: each piece alone is no secret, and what was streamed is in the store before the message is.
it('a secret that comes in pieces is neither in the chunks nor in the message', async () => {
  const stop = hold();
  const reply = say(`The key is ${SECRET} as far as I know, and that is all of it.`, { reasoning: `Hm, ${SECRET}.` });
  talk.on('tell me', () => paced(reply, { betweenChunksMs: 60, hold: stop, holdAt: 11 }));
  const { session } = await at.submit('tell me');
  const shown = await until('what follows the secret', async () => {
    const rows = await at.house.database.db.select().from(delta).where(eq(delta.stream, session)).orderBy(asc(delta.n));
    const text = rows.flatMap(({ channel, chunk }) => (channel === 'text' ? [chunk] : [])).join('');
    return text.includes('as far') && { text, all: rows.map(({ chunk }) => chunk).join('') };
  });
  expect(shown.text).toMatch(/^The key is \*\*\* as far/);
  expect(shown.all).not.toMatch(/split|three-words/);
  stop.release();
  await at.ended(session);
  expect((await at.transcript(session)).at(-1)).toMatchObject({
    text: 'The key is *** as far as I know, and that is all of it.',
    reasoning: 'Hm, ***.',
  });
  expect(JSON.stringify([await at.transcript(session), await at.events(session)])).not.toContain(SECRET);
});
