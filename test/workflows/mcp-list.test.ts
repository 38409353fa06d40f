import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eq, inArray } from 'drizzle-orm';
import { expect, it, onTestFinished } from 'vitest';
import { toolList, turn } from '../../activities/store/schema.ts';
import { hold, paced, callTools, countToolResults, say } from '../../testing/index.ts';
import { offered, reads } from '../activities/mcp/fixture.ts';
import { conversations, userTexts } from '../support/conversations.ts';
import { testHouse } from '../support/test-house.ts';

const SERVER = fileURLToPath(new URL('../activities/mcp/fixture-server.js', import.meta.url));

// Trap: a list that is asked for at each step changes under the model's hands, and a retry would send other bytes.
it('a list that changes in the middle of a turn counts from the next one; each turn keeps its own by hash', async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'pawl-mcp-')));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const offer = (...names: string[]) =>
    writeFileSync(join(folder, 'tools.json'), JSON.stringify(names.map((name) => offered(name, reads))));
  offer('announce', 'two');
  const talk = conversations();
  const at = await testHouse({
    rules: talk.rules,
    agent: { tools: ['mcp__box__*'], permissions: { mode: 'bypass' } },
    definition: { mcp: { box: { command: process.execPath, args: [SERVER, folder] } } },
  });
  onTestFinished(() => at.close());
  const stop = hold();
  talk.on('look', (request) => {
    if (userTexts(request).length > 1 || countToolResults(request) > 0) return say('Done.');
    return paced(callTools([{ name: 'mcp__box__announce', arguments: {} }]), { hold: stop });
  });
  const { session } = await at.submit('look');
  await stop.reached;
  // The call has the server say that its list has changed, while the turn goes on.
  offer('two', 'three');
  // The next turn waits already: it opens as soon as this one ends, without the session coming to rest between them.
  await at.send(session, 'prompt', 'again');
  stop.release();
  expect(await at.ended(session)).toMatchObject({ endReason: 'COMPLETED', endStep: 1 });
  expect(await at.ended(session, 2)).toMatchObject({ endReason: 'COMPLETED' });

  const sent = at.provider.requests.map(({ sent: body }) =>
    ((body as { tools?: { function: { name: string } }[] }).tools ?? []).map((tool) => tool.function.name),
  );
  const [before, after] = [
    ['mcp__box__announce', 'mcp__box__two'],
    ['mcp__box__three', 'mcp__box__two'],
  ];
  expect(sent).toEqual([before, before, after]);
  const { db } = at.house.database;
  const turns = await db.select().from(turn).where(eq(turn.session, session)).orderBy(turn.n);
  const lists = await db
    .select()
    .from(toolList)
    .where(
      inArray(
        toolList.hash,
        turns.map(({ tools }) => tools),
      ),
    );
  const namesOf = (hash?: string) => lists.find((list) => list.hash === hash)?.tools.map(({ name }) => name);
  expect(turns.map(({ tools }) => namesOf(tools))).toEqual([before, after]);
});
