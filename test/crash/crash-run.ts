import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { and, eq } from 'drizzle-orm';
import pg from 'pg';
import { inject } from 'vitest';
import { readEvents } from '../../activities/store/events.ts';
import { event, job } from '../../activities/store/schema.ts';
import { EngineAway } from '../../client/faults.ts';
import { createRuns, type Runs } from '../../client/runs.ts';
import type { Submitted } from '../../client/submit.ts';
import { type Hold, hold, lastUserText, type ScriptedProvider, startScriptedProvider } from '../../testing/index.ts';
import { type House, openHouse } from '../../worker/house.ts';
import { until } from '../support/until.ts';
import type { Patience } from '../../workflows/core/policy.ts';
import { compiledProgram } from './compiled.ts';
import { crashConfig, type ProcessOrder, type ProcessReady, submissionOf } from './crash-config.ts';
import type { Boundary } from './kill-at.ts';
import { prepareFiles, replyTo } from './scenario.ts';

/** One provider for all runs: a request names its run in the user's message. */
export interface CrashProvider {
  readonly provider: ScriptedProvider;
  /** The first request of that step stops in the middle of its stream. */
  hold(run: string, step: number): Hold;
}

export async function startCrashProvider(): Promise<CrashProvider> {
  const holds = new Map<string, { readonly step: number; readonly hold: Hold }>();
  const provider = await startScriptedProvider({
    expectKey: true,
    rules: (request) => {
      const run = lastUserText(request);
      const held = holds.get(run) ?? null;
      const reply = replyTo(request, held);
      if (reply.pace.hold) holds.delete(run);
      return reply;
    },
  });
  return {
    provider,
    hold(run, step) {
      const place = hold();
      holds.set(run, { step, hold: place });
      return place;
    },
  };
}

export interface Servers {
  readonly temporalAddress: string;
  /** A superuser's, on a server where each run makes a database of its own. */
  readonly databaseUrl: string;
}

export interface CrashOptions {
  readonly provider: CrashProvider;
  /** Null: the worker process brings its own, and owns them. */
  readonly servers: Servers | null;
  /** The shell command waits until its process is killed or `release` is called. */
  readonly holdShell?: boolean;
  readonly holdSampleAt?: number;
  readonly hooks?: NonNullable<ProcessOrder['hooks']>;
  readonly contextTokens?: number;
  readonly patience?: Partial<Patience>;
}

export interface Child {
  readonly ready: Promise<ProcessReady>;
  /** Resolves with the signal that ended it. */
  readonly died: Promise<NodeJS.Signals | null>;
  kill(): Promise<void>;
}

/** One job on a task queue, a database and files of its own, worked on by processes that get killed. */
export class CrashRun {
  readonly name = `run-${randomBytes(5).toString('hex')}`;
  readonly folder = mkdtempSync(join(tmpdir(), 'pawl-crash-'));
  readonly workspace = join(this.folder, 'workspaces', 'ws');
  readonly held: Hold | null;
  readonly provider: ScriptedProvider;
  readonly #children: Child[] = [];
  readonly #own: boolean;
  #order: Omit<ProcessOrder, 'dieAt'>;
  #opened: { readonly house: House; readonly runs: Runs } | null = null;
  session = '';

  static async prepare(options: CrashOptions): Promise<CrashRun> {
    // It takes a while, in which nothing else is done here: before any connection is open.
    compiledProgram();
    const servers = options.servers && {
      ...options.servers,
      databaseUrl: await freshDatabase(options.servers.databaseUrl),
    };
    const run = new CrashRun(options, servers);
    if (servers) await run.open();
    return run;
  }

  private constructor(options: CrashOptions, servers: Servers | null) {
    const { provider, holdSampleAt } = options;
    this.provider = provider.provider;
    this.held = holdSampleAt === undefined ? null : provider.hold(this.name, holdSampleAt);
    this.#own = servers === null;
    const { hooks, contextTokens, patience = {} } = options;
    const providerUrl = this.provider.baseUrl;
    const more = { patience, ...(hooks ? { hooks } : {}), ...(contextTokens === undefined ? {} : { contextTokens }) };
    this.#order = { folder: this.folder, taskQueue: this.name, providerUrl, servers, ...more };
    mkdirSync(join(this.folder, 'home'), { mode: 0o711 });
    symlinkSync(inject('bundleCache'), join(this.folder, 'home', 'cache'));
    prepareFiles(this.workspace, options.holdShell ?? false);
  }

  get house(): House {
    if (!this.#opened) throw new Error('the servers of this run are not reached yet');
    return this.#opened.house;
  }

  get runs(): Runs {
    if (!this.#opened) throw new Error('the servers of this run are not reached yet');
    return this.#opened.runs;
  }

  async open(servers = this.#order.servers): Promise<void> {
    const house = await openHouse(crashConfig({ ...this.#order, servers }), { embedded: false, onProgress: () => {} });
    this.#opened = { house, runs: createRuns(house) };
  }

  async leave(): Promise<void> {
    await this.#opened?.house.close();
    this.#opened = null;
  }

  /** As a caller should: repeated, with the same key, while the engine is too busy to answer. */
  async submit(): Promise<Submitted & { kind: 'accepted' }> {
    const submitted = await until('the job is accepted', () =>
      this.runs.submit(submissionOf(this.name)).catch(whenAway),
    );
    if (submitted.kind !== 'accepted') throw new Error(submitted.kind);
    this.session = submitted.session;
    return submitted;
  }

  /** Jobs that are in the store under the key of this run; the run goes on with the first. */
  async stored(): Promise<(typeof job.$inferSelect)[]> {
    const jobs = await this.house.database.db.select().from(job).where(eq(job.key, this.name));
    this.session = jobs[0]?.session ?? '';
    return jobs;
  }

  /** Lets a held command go on. */
  releaseShell(): void {
    rmSync(join(this.workspace, 'hold'), { force: true });
  }

  worker(dieAt: Boundary | null = null): Child {
    return this.#fork('worker-process', dieAt);
  }

  submitter(dieAt: Boundary | null = null): Child {
    return this.#fork('submit-process', dieAt);
  }

  #fork(script: 'worker-process' | 'submit-process', dieAt: Boundary | null): Child {
    const child = startChild(join(compiledProgram(), 'test/crash', `${script}.js`), { ...this.#order, dieAt });
    this.#children.push(child);
    return child;
  }

  /** Waits until a process has killed itself where it was told to. */
  async dies(child: Child, { when, at }: Boundary, limitMs = 120_000): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), limitMs);
    });
    const signal = await Promise.race([child.died, late]);
    clearTimeout(timer);
    if (signal !== 'SIGKILL') throw new Error(`no death ${when} ${at} (${signal}); so far: ${await this.#soFar()}`);
  }

  /** Waits until the session has come to rest, which is after its turn has its end. */
  async ended(limitMs = 120_000): Promise<void> {
    const { db } = this.house.database;
    const rested = and(eq(event.session, this.session), eq(event.kind, 'driver.ended'));
    try {
      await until('the rest of the session', async () => (await db.$count(event, rested).catch(() => 0)) > 0, limitMs);
    } catch (error) {
      throw new Error(`${(error as Error).message}; so far: ${await this.#soFar()}`);
    }
  }

  async #soFar(): Promise<string> {
    const events = await readEvents(this.house.database.db, this.session, 0, 10_000).catch(() => []);
    const path = join(this.folder, 'home', 'logs', 'worker.log');
    const log = await until('a log', () => readFileSync(path, 'utf8'), 0).catch(() => '');
    return `${events.map(({ event }) => event.kind).join(' ')}\n${log.split('\n').slice(-15).join('\n')}`;
  }

  async close(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.kill()));
    if (this.#opened && !this.#own) await forgetInEngine(this.house, this.session);
    await this.leave();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function startChild(script: string, order: ProcessOrder): Child {
  const child = fork(script, [JSON.stringify(order)], {
    execArgv: [],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const died = once(child, 'exit').then(([, signal]) => signal as NodeJS.Signals | null);
  const ready = Promise.race([
    once(child, 'message').then(([message]) => message as ProcessReady),
    died.then((signal) => Promise.reject(new Error(`the process ended before it was ready (${signal})`))),
  ]);
  ready.catch(() => {});
  return { ready, died, kill: () => killed(child, died) };
}

async function killed(child: ChildProcess, died: Promise<unknown>): Promise<void> {
  child.kill('SIGKILL');
  await died;
}

function whenAway(error: unknown): null {
  if (error instanceof EngineAway) return null;
  throw error;
}

export async function freshDatabase(server: string): Promise<string> {
  const name = `crash_${randomBytes(6).toString('hex')}`;
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  await client.query(`create database ${name}`);
  await client.end();
  return server.replace(/\/[^/?]*(\?|$)/, `/${name}$1`);
}

/** The server serves other tests too: nothing of a run without a worker stays. */
export async function forgetInEngine({ temporal, taskQueue }: House, session: string): Promise<void> {
  const recovery = `${taskQueue}-recovery`;
  await temporal.schedule
    .getHandle(recovery)
    .delete()
    .catch(() => {});
  for (const id of [recovery, `session/${session}`, `turn/${session}/1`]) {
    await temporal.workflow
      .getHandle(id)
      .terminate('the test is over')
      .catch(() => {});
  }
}
