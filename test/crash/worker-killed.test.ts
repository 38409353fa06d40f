import { setTimeout as sleep } from 'node:timers/promises';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { turn } from '../../activities/store/schema.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import { until } from '../support/until.ts';
import { CrashRun, type CrashProvider, startCrashProvider } from './crash-run.ts';
import type { Boundary } from './kill-at.ts';
import { shellRuns } from './scenario.ts';
import { compareWorld, type Expected, UNDISTURBED } from './world.ts';

const LIMIT_MS = 280_000;

let provider: CrashProvider;
beforeAll(async () => {
  provider = await startCrashProvider();
});
afterAll(async () => {
  provider.provider.assertDone();
  await provider.provider.close();
});

/**
 * One turn, and one worker after the other that dies on it: each is started when the one before is dead.
 * `expected` is what all these deaths together may change; everything else is as if nothing had happened.
 */
interface Chain {
  readonly name: string;
  readonly deaths: readonly Boundary[];
  readonly expected: Expected;
}

const before = (at: Boundary['at'], having?: string): Boundary => ({ when: 'before', at, ...(having && { having }) });
const after = (at: Boundary['at'], having?: string, laterMs?: number): Boundary => ({
  ...before(at, having),
  when: 'after',
  ...(laterMs && { laterMs }),
});
const step = (n: number) => `"step":${n},`;
const tool = (name: string) => `"tool":"${name}"`;

const TOLD: Expected = { ...UNDISTURBED, shell: 'unknown' };

const CHAINS: readonly Chain[] = [
  {
    name: 'before each commit from the opening to the first result',
    deaths: [
      before('promote'),
      before('enterRun'),
      before('openSample', step(0)),
      before('closeSample', step(0)),
      before('finishCall', tool('read_file')),
    ],
    expected: { ...UNDISTURBED, askedAgain: 1 },
  },
  {
    name: 'after each commit from the opening to the first result',
    deaths: [
      after('promote'),
      after('enterRun'),
      after('openSample', step(0)),
      after('closeSample', step(0)),
      after('finishCall', tool('read_file')),
    ],
    expected: UNDISTURBED,
  },
  {
    name: 'before each commit of an edit, and before its file is in place',
    deaths: [
      before('openSample', step(1)),
      before('closeSample', step(1)),
      before('startEffect'),
      before('rename', 'list.txt'),
      before('finishCall', tool('edit_file')),
    ],
    expected: { ...UNDISTURBED, askedAgain: 1 },
  },
  {
    name: 'after each commit of an edit, and after its file is in place',
    deaths: [
      after('openSample', step(1)),
      after('closeSample', step(1)),
      after('startEffect'),
      after('rename', 'list.txt'),
      after('finishCall', tool('edit_file')),
    ],
    expected: UNDISTURBED,
  },
  {
    name: 'before each commit of a write, then before the command may start',
    deaths: [
      before('startEffect', 'new.txt'),
      before('rename', 'new.txt'),
      before('finishCall', tool('write_file')),
      before('startEffect'),
    ],
    expected: UNDISTURBED,
  },
  {
    name: 'after each commit of a write, then after the command may start: it did not, but who knows',
    deaths: [
      after('startEffect', 'new.txt'),
      after('rename', 'new.txt'),
      after('finishCall', tool('write_file')),
      after('startEffect'),
    ],
    expected: { ...TOLD, lines: 0 },
  },
  {
    name: 'when the command has started and the ledger does not know its process',
    deaths: [before('noteGroup')],
    expected: { ...TOLD, lines: 'at most 1' },
  },
  {
    name: 'when the ledger knows the process of the command, then around the next sample',
    deaths: [after('noteGroup'), before('openSample', step(5)), after('finishCall', tool('list_files'))],
    expected: { ...TOLD, lines: 'at most 1' },
  },
  {
    name: 'when the command is done and nobody knows, and again at each commit of telling so',
    deaths: [
      before('finishCall', tool('shell')),
      after('recordLost'),
      before('recordSettled'),
      after('recordSettled'),
      before('finishCall', tool('shell')),
      after('finishCall', tool('shell')),
    ],
    expected: TOLD,
  },
  {
    name: 'before the final answer is kept, and again at each commit of asking again, up to the rest',
    deaths: [
      before('closeSample', step(6)),
      before('closeLost'),
      after('closeLost'),
      before('closeSample', step(6)),
      before('writeEnd'),
      before('rest'),
    ],
    expected: { ...UNDISTURBED, askedAgain: 2 },
  },
  {
    name: 'after the last commits',
    deaths: [after('finishCall', tool('shell')), after('closeSample', step(6)), after('writeEnd'), after('rest')],
    expected: UNDISTURBED,
  },
  {
    name: 'somewhere in the gaps between the activities',
    deaths: [
      after('closeSample', step(0), 1),
      after('finishCall', tool('read_file'), 2),
      after('closeSample', step(1), 4),
      after('finishCall', tool('edit_file'), 7),
      after('closeSample', step(2), 11),
    ],
    // Where the process gets as far as the next sample, that one may be lost too.
    expected: { ...UNDISTURBED, askedAgain: 5 },
  },
];

const servers = () => ({ temporalAddress: inject('temporalAddress'), databaseUrl: inject('databaseUrl') });

const named = CHAINS.map((chain) => [chain.name, chain] as const);

it.concurrent.for(named)('a worker killed %s', { timeout: LIMIT_MS }, async ([, { deaths, expected }]) => {
  const run = await CrashRun.prepare({ provider, servers: servers() });
  try {
    await run.submit();
    for (const death of deaths) await run.dies(run.worker(death), death);
    run.worker();
    await run.ended();
    await compareWorld(run, expected);
  } finally {
    await run.close();
  }
});

it.concurrent('a worker killed in the middle of a sample, and the next one in the middle of a command', {
  timeout: LIMIT_MS,
}, async () => {
  const run = await CrashRun.prepare({ provider, servers: servers(), holdSampleAt: 2, holdShell: true });
  try {
    await run.submit();
    const first = run.worker();
    await run.held?.reached;
    await first.kill();
    // So long that the time in which no worker is there is told from a moment between two attempts.
    await sleep(POLICY.away.fromMs + POLICY.heartbeat.timeoutMs);
    const second = run.worker();
    await until('the command runs', () => shellRuns(run.workspace), 60_000);
    await second.kill();
    run.worker();
    await run.ended();
    const { usage, events } = await compareWorld(run, { ...TOLD, askedAgain: 1 });
    expect(usage.filter(({ outcome }) => outcome === 'lost').length).toBe(1);
    const [row] = await run.house.database.db.select().from(turn).where(eq(turn.session, run.session));
    const tookMs = (row?.endedAt?.getTime() ?? Number.NaN) - (row?.openedAt.getTime() ?? Number.NaN);
    expect(row?.endRunningMs, 'nobody was there for a while').toBeLessThan(tookMs - POLICY.away.fromMs);
    expect(events.filter(({ event }) => event.kind === 'attempt.lost').map(({ event }) => event.layer)).toEqual([
      'stream',
      'batch',
    ]);
  } finally {
    await run.close();
  }
});
