import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { WorkflowNotFoundError } from '@temporalio/client';
import { NativeConnection, Worker } from '@temporalio/worker';
import { eq } from 'drizzle-orm';
import { signalSession } from '../activities/engine/temporal-engine.ts';
import { storeJob } from '../activities/store/intake.ts';
import { turn } from '../activities/store/schema.ts';
import { startProviderProcess } from '../testing/index.ts';
import { resolveConfig } from '../worker/config/load.ts';
import { type House, openHouse } from '../worker/house.ts';
import { startWorker } from '../worker/start-worker.ts';
import { turnIdOf, turnWorkflowId } from '../workflows/messages.ts';
import { bareActivities } from './bare-activities.ts';

const RUNS = Number(process.env.BENCH_RUNS ?? 5);
const CASES = [
  { name: 'alone', concurrent: 1, rounds: 40 },
  { name: '16 at once', concurrent: 16, rounds: 40 },
] as const;
/** `BENCH_IDLE=1000`: once more beside so many sessions that have just come to rest. */
const IDLE = Number(process.env.BENCH_IDLE ?? 0);
const BARE_QUEUE = 'bench-bare';

/** ms per round of Pawl beside a bare loop, in turns in one run; medians and their ratio as JSON lines. */
async function main(): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'pawl-bench-'));
  // The database's own user may enter, so that its files are in this folder and go with it.
  chmodSync(home, 0o711);
  process.env.PAWL_HOME = home;
  const provider = await startProviderProcess(fileURLToPath(new URL('./provider-rules.ts', import.meta.url)));
  const config = resolveConfig(
    {
      agents: [{ name: 'bench', model: 'scripted', provider: 'scripted', instructions: 'Read.', tools: ['read_file'] }],
      providers: { scripted: { baseUrl: provider.baseUrl, apiKeyEnv: null } },
    },
    null,
  );
  const house = await openHouse(config, { embedded: true, onProgress: () => {} });
  const worker = await startWorker(house, { onFault: fail });
  const stopBare = await startBare(house, provider.baseUrl);
  try {
    for (const each of CASES) await measure(house, each);
    if (IDLE > 0) await besideIdle(house);
  } finally {
    await stopBare();
    await worker.stop();
    await house.close();
    await provider.stop();
    rmSync(home, { recursive: true, force: true });
  }
}

interface Case {
  readonly name: string;
  readonly concurrent: number;
  readonly rounds: number;
}

/** Sessions that rest hold no memory and ask for nothing: the busy ones must not notice them. */
async function besideIdle(house: House): Promise<void> {
  const { concurrent, rounds } = CASES[1];
  for (let n = 0; n < IDLE; n += concurrent) {
    await Promise.all(Array.from({ length: Math.min(concurrent, IDLE - n) }, () => pawlTurn(house, 0)));
  }
  await measure(house, { name: `${concurrent} at once beside ${IDLE} idle`, concurrent, rounds });
}

async function measure(house: House, { name, concurrent, rounds }: Case): Promise<void> {
  const loops = { pawl: () => pawlTurn(house, rounds), bare: () => bareLoop(house, rounds) };
  const ms = { pawl: [] as number[], bare: [] as number[] };
  for (const which of ['pawl', 'bare'] as const) await loops[which]();
  for (let run = 0; run < RUNS; run += 1) {
    for (const which of ['pawl', 'bare'] as const) {
      const begun = performance.now();
      await Promise.all(Array.from({ length: concurrent }, loops[which]));
      ms[which].push((performance.now() - begun) / rounds);
    }
  }
  const pawl = median(ms.pawl);
  const bare = median(ms.bare);
  print({
    case: name,
    concurrent,
    rounds,
    runs: RUNS,
    unit: 'ms per round',
    pawl,
    bare,
    ratio: round(pawl / bare),
    target: 1.3,
  });
}

async function pawlTurn(house: House, rounds: number): Promise<void> {
  const { db } = house.database;
  const key = randomBytes(8).toString('hex');
  const agent = house.catalogue.agent(undefined);
  const folder = join(house.config.workspaceRoot, key);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'small.txt'), 'small\n');
  const found = house.catalogue.workspace(key, key);
  if (!agent || !found.ok) throw new Error('the bench has no agent or workspace');
  const text = `rounds=${rounds}`;
  const job = await storeJob(db, {
    tenant: 'default',
    key,
    fingerprint: key,
    agent,
    workspace: found.workspace,
    text,
    ticket: null,
    sender: null,
  });
  if (job.kind !== 'accepted') throw new Error(job.kind);
  await signalSession(house.temporal, house.taskQueue, job.session);
  const { result } = await resultOf(house, turnWorkflowId(turnIdOf(job.session, 1)));
  const [row] = await db.select().from(turn).where(eq(turn.session, job.session));
  if (row?.endReason !== 'COMPLETED' || result !== undefined)
    throw new Error(`a bench turn ended ${row?.endReason}/${row?.endDetail}`);
}

/** Waits as a client of the bare loop does, once the session has started the turn. */
async function resultOf(house: House, workflowId: string): Promise<{ result: unknown }> {
  for (;;) {
    try {
      return { result: (await house.temporal.workflow.getHandle(workflowId).result()) ?? undefined };
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}

async function startBare(house: House, baseUrl: string): Promise<() => Promise<void>> {
  const { pool } = house.database;
  await pool.query('create table if not exists bare (loop text, kind text, round int, answer text)');
  const request = JSON.stringify({
    model: 'scripted',
    stream: true,
    stream_options: { include_usage: true },
    messages: [
      { role: 'system', content: 'Read.' },
      { role: 'user', content: 'rounds=1' },
    ],
  });
  const connection = await NativeConnection.connect({ address: house.addresses.temporal });
  const worker = await Worker.create({
    connection,
    taskQueue: BARE_QUEUE,
    workflowsPath: fileURLToPath(new URL('./bare-workflow.ts', import.meta.url)),
    activities: { ...bareActivities(pool, baseUrl, request) },
    maxConcurrentActivityTaskExecutions: 100,
  });
  const running = worker.run();
  return async () => {
    worker.shutdown();
    await running;
    await connection.close();
  };
}

async function bareLoop(house: House, rounds: number): Promise<void> {
  const workflowId = `bare/${randomBytes(8).toString('hex')}`;
  await house.temporal.workflow.execute('bareWorkflow', {
    workflowId,
    taskQueue: BARE_QUEUE,
    args: [workflowId, rounds],
  });
}

function median(values: readonly number[]): number {
  return round([...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN);
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

function print(line: unknown): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function fail(error: unknown): never {
  throw error;
}

await main();
