import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Deps } from '../../../activities/deps.ts';
import { startedAt, thisHost, thisProcess } from '../../../activities/process/identity.ts';
import { readCall, startEffect } from '../../../activities/store/ledger.ts';
import { awaitDeath } from '../../../activities/turn/prove-dead.ts';
import type { ToolAttempt } from '../../../activities/turn/tool-attempt.ts';
import { type TestDatabase, testDatabase } from '../../support/database.ts';
import { seedCalls, seedTurn } from '../store/seed.ts';

let at: TestDatabase;
beforeAll(async () => {
  at = await testDatabase();
});
afterAll(() => at.close());

/** An effect that a process of this machine holds, or one of another machine. */
async function held(pid: number, { leaseMs, host = thisHost() }: { leaseMs: number; host?: Deps['host'] }) {
  const turn = await seedTurn(at.db);
  const [key = ''] = await seedCalls(at.db, turn, 'once');
  const process = { pid, started: startedAt(pid) ?? 'gone' };
  await startEffect(
    at.db,
    { fence: turn.fence, key, from: null, details: null, mayInPlan: false },
    { attempt: key, host, process, leaseMs },
  );
  const row = (await readCall(at.db, key))?.effect;
  if (!row) throw new Error('there is no effect');
  const attempt = { deps: { database: at, host: thisHost(), process: thisProcess() } } as unknown as ToolAttempt;
  const from = Date.now();
  return async () => {
    await awaitDeath(attempt, row);
    return Date.now() - from;
  };
}

function sleeper() {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' });
  const died = once(child, 'exit');
  return {
    pid: child.pid ?? 0,
    kill: async () => {
      child.kill('SIGKILL');
      await died;
    },
  };
}

// The other attempt lives: looking, or sending again, before its lease is over would make two.
it('waits for the end of the lease while the holder lives', async () => {
  const holder = sleeper();
  try {
    expect(await (await held(holder.pid, { leaseMs: 1_500 }))()).toBeGreaterThanOrEqual(1_400);
  } finally {
    await holder.kill();
  }
});

it('goes on as soon as the holder is dead', async () => {
  const holder = sleeper();
  const wait = await held(holder.pid, { leaseMs: 60_000 });
  const waited = wait();
  await holder.kill();
  expect(await waited).toBeLessThan(20_000);
});

// A process number of another machine says nothing here.
it('waits for the lease of a holder on another machine, or of an earlier boot', async () => {
  const gone = 2 ** 22 + 1;
  const host = thisHost();
  const waits = await Promise.all([
    held(gone, { leaseMs: 1_500, host: { ...host, host: 'elsewhere' } }),
    held(gone, { leaseMs: 1_500, host: { ...host, boot: 'before' } }),
  ]);
  for (const waited of await Promise.all(waits.map((wait) => wait()))) expect(waited).toBeGreaterThanOrEqual(1_400);
});
