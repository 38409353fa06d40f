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
      if (lastUserText(request) === 'the sub-agent') return say('Done below.');
      const spawn = { name: 'spawn_agent', arguments: { agent: 'tester', prompt: 'the sub-agent' } };
      return countToolResults(request) === 0 ? callTools([spawn]) : say('Done.');
    },
  });
});
afterAll(() => provider.close());

/** A worker that dies between a commit and its word, as a sub-agent begins and as it ends. */
const DEATHS: readonly Boundary[] = [
  { when: 'before', at: 'startAgent' },
  { when: 'after', at: 'startAgent' },
  { when: 'before', at: 'writeEnd', having: '"kind":"agent.ended"' },
  { when: 'after', at: 'writeEnd', having: '"kind":"agent.ended"' },
];

it('killed around the start and the end of a sub-agent: there is exactly one, and its end is told', {
  timeout: 240_000,
}, async () => {
  const servers = { temporalAddress: inject('temporalAddress'), databaseUrl: inject('databaseUrl') };
  const unused = () => {
    throw new Error('this provider says the same in every run');
  };
  const run = await CrashRun.prepare({ provider: { provider, hold: unused }, servers });
  try {
    const { session } = await run.submit();
    for (const death of DEATHS) await run.dies(run.worker(death), death);
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
    for (const kind of ['agent.started', 'agent.ended']) expect(kinds.filter((each) => each === kind)).toHaveLength(1);
    expect(provider.requests.map(({ body }) => lastUserText(body))).toEqual([run.name, 'the sub-agent', run.name]);
    expect(provider.faults).toEqual([]);
  } finally {
    await run.close();
  }
});
