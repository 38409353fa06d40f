import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { readEvents } from '../../activities/store/events.ts';
import { type ScriptedProvider, startScriptedProvider, status } from '../../testing/index.ts';
import { turnWorkflowId } from '../../workflows/messages.ts';
import { until } from '../support/until.ts';
import { CrashRun } from './crash-run.ts';

const WAIT_MS = 8_000;

let provider: ScriptedProvider;
let asked = 0;
beforeAll(async () => {
  provider = await startScriptedProvider({
    rules: () => {
      asked += 1;
      const seconds = asked === 1 ? WAIT_MS / 1_000 : 1;
      return status(429, { error: { message: 'slow down' } }, { 'retry-after': String(seconds) });
    },
  });
});
afterAll(() => provider.close());

// Trap: a timer or a counter that lives in the process is begun anew by the next one.
it('killed in a back-off: the rest is not begun again, its budget is not refilled, and the kill costs no try', {
  timeout: 180_000,
}, async () => {
  const servers = { temporalAddress: inject('temporalAddress'), databaseUrl: inject('databaseUrl') };
  const unused = () => {
    throw new Error('this provider says one thing only');
  };
  const run = await CrashRun.prepare({ provider: { provider, hold: unused }, servers });
  try {
    const { session } = await run.submit();
    const first = run.worker();
    const turn = run.house.temporal.workflow.getHandle(turnWorkflowId(`${session}/1`));
    await until('it rests', async () => {
      const history = await turn.fetchHistory().catch(() => null);
      return history?.events?.some((each) => each.timerStartedEventAttributes) ?? false;
    });
    await first.kill();
    await run.worker().ready;
    await run.ended();

    const events = await readEvents(run.house.database.db, session, 0, 10_000);
    const timesOf = (kind: string) =>
      events.filter(({ event }) => event.kind === kind).map(({ at }) => new Date(at).getTime());
    const [begun, ended] = [timesOf('sample.started'), timesOf('stream.ended')];
    expect([begun.length, ended.length, asked]).toEqual([3, 3, 3]);
    expect((begun[1] ?? 0) - (ended[0] ?? 0)).toBeGreaterThanOrEqual(WAIT_MS - 500);
    const { events: history } = await turn.fetchHistory();
    // One timer for each rest: had the kill begun the first one again, there would be three.
    const timers = history?.flatMap((each) => (each.timerStartedEventAttributes ? [each.eventId] : []));
    expect(timers).toHaveLength(2);
    expect(timesOf('attempt.lost')).toEqual([]);
    const [end] = events.flatMap(({ event }) => (event.kind === 'turn.ended' ? [event] : []));
    expect(end).toMatchObject({
      reason: 'ERROR',
      detail: 'provider_unavailable',
      evidence: { name: 'retries_spent', cause: 'rate_limited', used: 3 },
    });
  } finally {
    await run.close();
  }
});
