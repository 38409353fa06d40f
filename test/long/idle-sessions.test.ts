import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { eq } from 'drizzle-orm';
import { expect, inject, it } from 'vitest';
import { signalSession } from '../../activities/engine/temporal-engine.ts';
import { storeJob } from '../../activities/store/intake.ts';
import { event, turn } from '../../activities/store/schema.ts';
import { say, startScriptedProvider } from '../../testing/index.ts';
import { type House, openHouse } from '../../worker/house.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import { sessionWorkflowId } from '../../workflows/messages.ts';
import { testDatabase } from '../support/database.ts';
import { note } from '../support/numbers.ts';
import { until } from '../support/until.ts';
import { type LongOrder, longConfig } from './long-config.ts';

/** `IDLE_SESSIONS=1000` is the whole measurement; the suite takes a smaller one. */
const SESSIONS = Number(process.env.IDLE_SESSIONS ?? 80);
/** What is done once, however many sessions there are: code is compiled, pools and caches are filled. */
const WARM_UP = 60;
const AT_ONCE = 16;
/** What 1,000 idle sessions may add to a worker. */
const MAY_ADD_MB = 30;
/** What sessions leave behind, each round of them adds again; caches fill once, and garbage comes and goes. */
const ROUNDS = 3;
const SOON_MS = POLICY.session.idleMs + 90_000;
const LIMIT_MS = 900_000;
const fileOf = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** Resident memory of the worker behind a collection of its garbage, in MB. */
async function memoryOf(worker: ChildProcess): Promise<number> {
  worker.send('measure');
  const [{ rss }] = (await once(worker, 'message')) as [{ rss: number }];
  return rss / 2 ** 20;
}

async function submit(house: House, key: string): Promise<string> {
  const agent = house.catalogue.agent(undefined);
  const found = house.catalogue.workspace(undefined, key);
  if (!agent || !found.ok) throw new Error('the test has no usable agent or workspace');
  const { workspace } = found;
  const facts = { agent, workspace, text: `Say something about ${key}.`, ticket: null, sender: null };
  const job = await storeJob(house.database.db, { tenant: 'default', key, fingerprint: key, ...facts });
  if (job.kind !== 'accepted') throw new Error(job.kind);
  await signalSession(house.temporal, house.taskQueue, job.session);
  return job.session;
}

/** Sessions whose one turn has ended and whose driver has come to rest. */
async function idleSessions(house: House, count: number, name: string): Promise<string[]> {
  const { db } = house.database;
  const before = await db.$count(event, eq(event.kind, 'driver.ended'));
  const sessions: string[] = [];
  for (let n = 0; n < count; n += AT_ONCE) {
    const keys = Array.from({ length: Math.min(AT_ONCE, count - n) }, (_, at) => `${name} ${n + at}`);
    sessions.push(...(await Promise.all(keys.map((key) => submit(house, key)))));
    const rested = before + sessions.length;
    await until(
      'all of them rest',
      async () => (await db.$count(event, eq(event.kind, 'driver.ended'))) >= rested,
      120_000,
    );
  }
  return sessions;
}

async function running(house: House): Promise<number> {
  const query = `TaskQueue = '${house.taskQueue}' and WorkflowType = 'sessionWorkflow' and ExecutionStatus = 'Running'`;
  return (await house.temporal.workflow.count(query)).count;
}

/** What so many sessions add to the worker: when the last has come to rest, and when all are over. In MB. */
async function addedBy(house: House, worker: ChildProcess, round: number): Promise<readonly [number, number]> {
  const before = await memoryOf(worker);
  const begun = performance.now();
  const sessions = await idleSessions(house, SESSIONS, `idle ${round}`);
  const tookMs = performance.now() - begun;
  const idle = await memoryOf(worker);
  const atOnce = await running(house);
  const last = house.temporal.workflow.getHandle(sessionWorkflowId(sessions.at(-1) ?? ''));
  // Nobody looks after a session that rests: its workflow is soon over.
  await until('the last one is over', async () => (await last.describe()).status.name === 'COMPLETED', SOON_MS);
  await until('all are over', async () => (await running(house)) === 0, SOON_MS);
  const gone = await memoryOf(worker);
  note('idle sessions', { sessions: SESSIONS, tookMs, atOnce, mb: [before, idle, gone].map(Math.round) });
  return [idle - before, gone - before];
}

it(`${SESSIONS} sessions that rest cost a worker next to nothing, and soon nothing at all`, {
  timeout: LIMIT_MS,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-idle-'));
  const provider = await startScriptedProvider({ rules: () => say('That is all.'), keepBodies: false });
  const database = await testDatabase();
  const order: LongOrder = {
    folder,
    taskQueue: `t-${randomBytes(6).toString('hex')}`,
    providerUrl: provider.baseUrl,
    temporalAddress: inject('temporalAddress'),
    databaseUrl: database.url,
    steps: 1,
  };
  mkdirSync(join(folder, 'home'));
  symlinkSync(inject('bundleCache'), join(folder, 'home', 'cache'));
  const house = await openHouse(longConfig(order), { embedded: false, onProgress: () => {} });
  const worker = fork(fileOf('./worker-process.ts'), [JSON.stringify(order)], {
    execArgv: ['--expose-gc', '--import', 'tsx'],
  });
  try {
    await once(worker, 'message');
    await idleSessions(house, WARM_UP, 'warm');
    let submitted = WARM_UP;
    let added = Number.POSITIVE_INFINITY;
    for (let round = 1; round <= ROUNDS && added > MAY_ADD_MB; round++) {
      added = Math.max(...(await addedBy(house, worker, round)));
      submitted += SESSIONS;
    }
    expect(added).toBeLessThanOrEqual(MAY_ADD_MB);
    expect(await house.database.db.$count(turn, eq(turn.endReason, 'COMPLETED'))).toBe(submitted);
    expect(provider.faults).toEqual([]);
  } finally {
    worker.kill();
    await house.close();
    await database.close();
    await provider.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
