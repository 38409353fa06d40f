import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { until } from '../support/until.ts';
import { CrashRun, type CrashProvider, startCrashProvider } from './crash-run.ts';
import type { Boundary } from './kill-at.ts';
import { shellRuns } from './scenario.ts';
import { compareWorld, type Expected, UNDISTURBED } from './world.ts';

const LIMIT_MS = 90_000;

let provider: CrashProvider;
beforeAll(async () => {
  provider = await startCrashProvider();
});
afterAll(async () => {
  provider.provider.assertDone();
  await provider.provider.close();
});

const servers = () => ({ temporalAddress: inject('temporalAddress'), databaseUrl: inject('databaseUrl') });

type Rows = readonly (readonly [at: Boundary['at'], nth: number, what: string, before: Expected, after: Expected])[];

const TOLD: Expected = { shell: 'unknown', lines: 'at most 1' };
const DONE_AND_TOLD: Expected = { shell: 'unknown', lines: 1 };
const ASKED_TWICE: Expected = { ...UNDISTURBED, askedTwice: 1 };

/** What a kill at this place may change in the world; everything else must be as if nothing had happened. */
const BOUNDARIES: Rows = [
  ['promote', 1, 'the turn opens', UNDISTURBED, UNDISTURBED],
  ['enterRun', 1, 'the run becomes known', UNDISTURBED, UNDISTURBED],
  ['openSample', 1, 'the first sample opens', UNDISTURBED, UNDISTURBED],
  ['openSample', 4, 'a sample opens that appends a result', UNDISTURBED, UNDISTURBED],
  ['closeSample', 1, 'the first reply is kept', ASKED_TWICE, UNDISTURBED],
  ['closeSample', 5, 'a reply with an acting call is kept', ASKED_TWICE, UNDISTURBED],
  ['closeSample', 7, 'the final answer is kept', ASKED_TWICE, UNDISTURBED],
  ['startEffect', 2, 'an edit starts', UNDISTURBED, UNDISTURBED],
  ['rename', 2, 'an edit takes place', UNDISTURBED, UNDISTURBED],
  ['startEffect', 3, 'a write starts', UNDISTURBED, UNDISTURBED],
  ['startEffect', 4, 'the shell call starts', UNDISTURBED, TOLD],
  ['noteGroup', 1, 'the ledger learns of the process', TOLD, TOLD],
  ['finishCall', 1, 'the result of a reader is kept', UNDISTURBED, UNDISTURBED],
  ['finishCall', 2, 'the result of an edit is kept', UNDISTURBED, UNDISTURBED],
  ['finishCall', 4, 'the result of a write is kept', UNDISTURBED, UNDISTURBED],
  ['finishCall', 5, 'the result of the shell call is kept', DONE_AND_TOLD, UNDISTURBED],
  ['writeEnd', 1, 'the end is written', UNDISTURBED, UNDISTURBED],
  ['rest', 1, 'the session comes to rest', UNDISTURBED, UNDISTURBED],
];

async function killAt(boundary: Boundary, expected: Expected): Promise<void> {
  const run = await CrashRun.prepare({ provider, servers: servers() });
  try {
    const first = run.worker(boundary);
    await run.submit();
    expect(await first.died).toBe('SIGKILL');
    run.worker();
    await run.ended();
    await compareWorld(run, expected);
  } finally {
    await run.close();
  }
}

describe('a worker killed at a commit', () => {
  it.concurrent.for(BOUNDARIES)('before: %s %i (%s)', { timeout: LIMIT_MS }, ([at, nth, , before]) =>
    killAt({ at, nth, when: 'before' }, before),
  );
  it.concurrent.for(BOUNDARIES)('after: %s %i (%s)', { timeout: LIMIT_MS }, ([at, nth, , , after]) =>
    killAt({ at, nth, when: 'after' }, after),
  );
});

describe('a worker killed elsewhere', () => {
  it.concurrent('in the middle of a sample: it is asked for again under the same key', { timeout: LIMIT_MS }, async () => {
    const run = await CrashRun.prepare({ provider, servers: servers(), holdSampleAt: 2 });
    try {
      const first = run.worker();
      await run.submit();
      await run.held?.reached;
      await first.kill();
      run.worker();
      await run.ended();
      const { usage, events } = await compareWorld(run, ASKED_TWICE);
      expect(usage.filter(({ outcome }) => outcome === 'lost').length).toBe(1);
      expect(events.filter(({ event }) => event.kind === 'attempt.lost').length).toBe(1);
    } finally {
      await run.close();
    }
  });

  it.concurrent('in the middle of a command: it is told as unknown and not repeated', { timeout: LIMIT_MS }, async () => {
    const run = await CrashRun.prepare({ provider, servers: servers(), holdShell: true });
    try {
      const first = run.worker();
      await run.submit();
      await until('the command runs', () => shellRuns(run.workspace));
      await first.kill();
      run.worker();
      await run.ended();
      await compareWorld(run, DONE_AND_TOLD);
    } finally {
      await run.close();
    }
  });
});
