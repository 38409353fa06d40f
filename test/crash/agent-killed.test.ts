import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { readEvents } from '../../activities/store/events.ts';
import { subAgent } from '../../activities/store/schema.ts';
import {
  callTools,
  countToolResults,
  lastUserText,
  say,
  type ScriptedProvider,
  startScriptedProvider,
} from '../../testing/index.ts';
import { CrashRun } from './crash-run.ts';
import type { Boundary } from './kill-at.ts';

let provider: ScriptedProvider;
beforeAll(async () => {
  provider = await startScriptedProvider({
    expectKey: true,
    rules: (request) => {
      const told = lastUserText(request);
      if (told.startsWith(BELOW)) return say('Done below.');
      const spawn = { name: 'spawn_agent', arguments: { agent: 'tester', prompt: `${BELOW}${told}` } };
      return countToolResults(request) === 0 ? callTools([spawn]) : say('Done.');
    },
  });
});
afterAll(() => provider.close());

const BELOW = 'below ';
const END = { at: 'writeEnd', having: '"kind":"agent.ended"' } as const;

/** A worker that dies between a commit and its word, as a sub-agent begins and as it ends. */
const DEATHS: readonly (readonly [name: string, deaths: readonly Boundary[]])[] = [
  [
    'before its commits',
    [
      { when: 'before', at: 'startAgent' },
      { when: 'before', ...END },
    ],
  ],
  [
    'behind its commits',
    [
      { when: 'after', at: 'startAgent' },
      { when: 'after', ...END },
    ],
  ],
];

it.concurrent.each(DEATHS)(
  'killed at the start and the end of a sub-agent, %s: there is exactly one, and its end is told',
  {
    timeout: 240_000,
  },
  async (_, deaths) => {
    const servers = { temporalAddress: inject('temporalAddress'), databaseUrl: inject('databaseUrl') };
    const unused = () => {
      throw new Error('this provider says the same in every run');
    };
    const run = await CrashRun.prepare({ provider: { provider, hold: unused }, servers });
    try {
      const { session } = await run.submit();
      for (const death of deaths) await run.dies(run.worker(death), death);
      await run.worker().ready;
      await run.ended();
      const { db } = run.house.database;
      expect(await db.select().from(subAgent)).toMatchObject([{ session: `${session}/agent/1`, chargedTokens: 110 }]);
      const events = await readEvents(db, session, 0, 10_000);
      const ends = events.flatMap(({ turn, event }) => (event.kind === 'turn.ended' ? [[turn, event.reason]] : []));
      expect(ends).toEqual([
        [`${session}/agent/1/1`, 'COMPLETED'],
        [`${session}/1`, 'COMPLETED'],
      ]);
      const kinds = events.map(({ event }) => event.kind);
      for (const kind of ['agent.started', 'agent.ended'])
        expect(kinds.filter((each) => each === kind)).toHaveLength(1);
      const asked = provider.requests.map(({ body }) => lastUserText(body)).filter((text) => text.endsWith(run.name));
      expect(asked).toEqual([run.name, `${BELOW}${run.name}`, run.name]);
      expect(provider.faults).toEqual([]);
    } finally {
      await run.close();
    }
  },
);
