import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eq } from 'drizzle-orm';
import { inject } from 'vitest';
import { readEvents } from '../../activities/store/events.ts';
import { call, effect, session, turn } from '../../activities/store/schema.ts';
import { ChainCache, loadChain } from '../../activities/store/transcript.ts';
import type { ApprovalAnswered, OpenApproval } from '../../client/approvals.ts';
import { createRuns, type Runs } from '../../client/runs.ts';
import { type ChatRequest, callTools, countToolResults, lastUserText, type Reply, say } from '../../testing/index.ts';
import type { JournalEvent } from '../../workflows/core/journal.ts';
import type { EmbeddedServers } from '../../worker/embedded/contract.ts';
import { type House, openHouse } from '../../worker/house.ts';
import type { Forge, ForgeFault } from '../support/forge.ts';
import { until } from '../support/until.ts';
import { compiledProgram } from './compiled.ts';
import { forgeConfig, type ForgeOrder } from './forge-config.ts';
import type { Boundary } from './kill-at.ts';

/** The model opens one pull request, then says so; the run's name is the branch. */
export function forgeRules(request: ChatRequest): Reply {
  const head = lastUserText(request);
  if (countToolResults(request) > 0) return say('It is open.');
  return callTools([{ name: 'open_pull_request', arguments: { repo: 'acme/app', head, title: `Fix ${head}` } }]);
}

export interface ForgeWorker {
  readonly pid: number;
  readonly died: Promise<unknown>;
  /** It kills itself there. */
  arm(at: Boundary): Promise<void>;
  signal(name: NodeJS.Signals): void;
  kill(): Promise<void>;
}

export interface ForgeRunOptions {
  readonly forge: Forge;
  readonly providerUrl: string;
  readonly canLookUp?: boolean;
  readonly attended?: boolean;
  readonly servers: ForgeOrder['servers'];
  /** Set where the engine may be killed: nobody else's jobs are on it. */
  readonly engine?: EmbeddedServers;
}

/** Jobs that open a pull request, one after the other, on a database and a task queue of their own. */
export class ForgeRun {
  readonly forge: Forge;
  readonly house: House;
  readonly #runs: Runs;
  readonly #order: Omit<ForgeOrder, 'dieAt'>;
  readonly #engine: EmbeddedServers | null;
  readonly #workers = new Set<ForgeWorker>();
  /** Of the job that runs now; its name is the branch. */
  name = '';
  #job = '';
  #session = '';

  static async open({
    forge,
    providerUrl,
    canLookUp = true,
    attended = false,
    servers,
    engine,
  }: ForgeRunOptions): Promise<ForgeRun> {
    const folder = mkdtempSync(join(tmpdir(), 'pawl-forge-'));
    mkdirSync(join(folder, 'home'));
    symlinkSync(inject('bundleCache'), join(folder, 'home', 'cache'));
    const taskQueue = `forge-${randomBytes(5).toString('hex')}`;
    const order = { folder, taskQueue, providerUrl, forgeUrl: forge.url, canLookUp, attended, servers };
    const house = await openHouse(forgeConfig(order), { embedded: false, onProgress: () => {} });
    return new ForgeRun(forge, house, order, engine ?? null);
  }

  private constructor(forge: Forge, house: House, order: Omit<ForgeOrder, 'dieAt'>, engine: EmbeddedServers | null) {
    this.forge = forge;
    this.house = house;
    this.#runs = createRuns(house);
    this.#order = order;
    this.#engine = engine;
  }

  /** Names the next job. Resolves when its first request has arrived at the forge. */
  begin(fault: ForgeFault): { readonly arrived: Promise<void> } {
    this.name = `branch-${randomBytes(5).toString('hex')}`;
    this.forge.fault(this.name, fault);
    if (!this.#order.canLookUp) this.forge.forget(this.name);
    return { arrived: this.forge.arrived(this.name) };
  }

  async submit(): Promise<void> {
    const submitted = await this.#runs.submit({ tenant: 'default', key: this.name, text: this.name });
    if (submitted.kind !== 'accepted') throw new Error(submitted.kind);
    this.#job = submitted.job;
    this.#session = submitted.session;
  }

  /** Starts workers until so many live; returns one of them. */
  async workers(count = 1): Promise<ForgeWorker> {
    while (this.#workers.size < count) await this.start();
    return [...this.#workers][0] as ForgeWorker;
  }

  /** Resolves when it works, or has died of what it was armed with. */
  async start(dieAt: Boundary | null = null): Promise<ForgeWorker> {
    const script = join(compiledProgram(), 'test/crash/forge-process.js');
    const child = fork(script, [JSON.stringify({ ...this.#order, dieAt })], {
      execArgv: [],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const died = once(child, 'exit').then(() => void this.#workers.delete(worker));
    const worker: ForgeWorker = {
      pid: child.pid ?? 0,
      died,
      async arm(at) {
        child.send(at);
        await once(child, 'message');
      },
      signal: (name) => void child.kill(name),
      async kill() {
        child.kill('SIGKILL');
        await died;
      },
    };
    this.#workers.add(worker);
    await Promise.race([once(child, 'message'), died]);
    return worker;
  }

  /** The worker whose attempt the ledger names. */
  async holder(): Promise<ForgeWorker> {
    const [row] = await this.house.database.db
      .select()
      .from(effect)
      .where(eq(effect.turn, `${this.#session}/1`));
    const found = [...this.#workers].find(({ pid }) => pid === row?.pid);
    if (!found) throw new Error('no worker holds the call');
    return found;
  }

  /** The question that a person is asked about the call; null while there is none. */
  async question(): Promise<OpenApproval | null> {
    const open = await this.#runs.approvals('default');
    return open.find(({ session: of }) => of === this.#session) ?? null;
  }

  async answer(what: 'happened' | 'absent' | 'again'): Promise<ApprovalAnswered | null> {
    const { id } = await until('a person is asked', () => this.question(), 90_000);
    return await this.#runs.answer('default', id, { answer: what, by: 'tester' });
  }

  /** Kills the engine; resolves when another one runs in its place. */
  async killEngine(): Promise<void> {
    const engine = this.#engine;
    if (!engine) throw new Error('this engine is not to be killed');
    const { temporal: before = 0 } = engine.pids();
    process.kill(before, 'SIGKILL');
    await until('the engine runs again', () => engine.pids().temporal !== before, 60_000);
  }

  async cancel(): Promise<void> {
    await this.#runs.cancel('default', this.#job, { by: 'tester' });
  }

  /** Everything that is known of the call once the turn has its end. */
  async ended(limitMs = 60_000) {
    const { db } = this.house.database;
    const id = `${this.#session}/1`;
    const row = await until(
      `the end of ${this.name}`,
      async () => (await db.select().from(turn).where(eq(turn.id, id))).find(({ endedAt }) => endedAt !== null),
      limitMs,
    );
    const [made] = await db.select().from(call).where(eq(call.turn, id));
    const [ledger] = await db.select().from(effect).where(eq(effect.turn, id));
    return { turn: row, call: made ?? null, effect: ledger ?? null, events: await this.events() };
  }

  async events(): Promise<JournalEvent[]> {
    return (await readEvents(this.house.database.db, this.#session, 0, 1_000)).map(({ event }) => event);
  }

  /** When somebody took the call over from a lost attempt, ms since the epoch. */
  async takenOverAt(): Promise<number> {
    const events = await readEvents(this.house.database.db, this.#session, 0, 1_000);
    return Date.parse(events.find(({ event }) => event.kind === 'attempt.lost')?.at ?? '');
  }

  /** What the model is told of the call. */
  async resultText(): Promise<string> {
    const { db } = this.house.database;
    const [owner] = await db.select().from(session).where(eq(session.id, this.#session));
    const chain = await loadChain(db, new ChainCache(), owner?.head ?? '');
    return chain.flatMap(({ body }) => (body.kind === 'tool_result' ? [body.text] : [])).join('\n');
  }

  async close(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.kill()));
    const { temporal, taskQueue } = this.house;
    await temporal.schedule
      .getHandle(`${taskQueue}-recovery`)
      .delete()
      .catch(() => {});
    for (const id of [`${taskQueue}-recovery`, `session/${this.#session}`, `turn/${this.#session}/1`]) {
      const handle = temporal.workflow.getHandle(id);
      await handle.terminate('the test is over').catch(() => {});
    }
    await this.house.close();
    rmSync(this.#order.folder, { recursive: true, force: true });
  }
}
