import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { and, eq } from 'drizzle-orm';
import { inject } from 'vitest';
import { readEvents } from '../../activities/store/events.ts';
import { event, turn } from '../../activities/store/schema.ts';
import type { GoalWish } from '../../activities/store/goal-plan.ts';
import { createRuns, type Runs } from '../../client/runs.ts';
import {
  type ChatRequest,
  countToolResults,
  type Reply,
  type ScriptedProvider,
  startScriptedProvider,
} from '../../testing/index.ts';
import { type House, openHouse } from '../../worker/house.ts';
import { userTexts } from '../support/conversations.ts';
import { until } from '../support/until.ts';
import { type CrowdAgent, crowdConfig, type CrowdForge, type CrowdOrder } from './crowd-config.ts';
import { CrowdWorker } from './crowd-worker.ts';
import { forgetInEngine, freshDatabase } from './crash-run.ts';
import type { Boundary } from './kill-at.ts';
import { prepareFiles } from './scenario.ts';

const LIMIT_MS = 90_000;

/** A repeated request must get the same answer. */
type Play = (request: ChatRequest) => Reply | undefined;

/** One of many jobs; its name is its prompt and the folder of its files. */
export interface Member {
  readonly name: string;
  readonly job: string;
  readonly session: string;
  readonly workspace: string;
  readonly house: House;
  readonly provider: ScriptedProvider;
}

/** A member, and the boundary where the next worker loses it. */
export type Death = readonly [Member, Boundary];

export interface CrowdOptions {
  readonly forge: CrowdForge;
  readonly storeUrl?: string;
  readonly temporalAddress?: string;
}

/**
 * Many jobs on one database and one task queue, and one worker after the other that dies on all of them at once,
 * each at a boundary of its own: a death costs no process, so that there may be one at each boundary.
 */
export class Crowd {
  readonly #order: CrowdOrder;
  readonly #plays: Map<string, Play>;
  readonly #members: Member[] = [];
  readonly #workers = new Set<CrowdWorker>();
  #next: CrowdWorker | null = null;
  readonly house: House;
  readonly provider: ScriptedProvider;
  readonly runs: Runs;

  static async open({ forge, storeUrl = forge.url, temporalAddress }: CrowdOptions): Promise<Crowd> {
    const plays = new Map<string, Play>();
    const provider = await startScriptedProvider({
      expectKey: true,
      rules: (request) => {
        const said = userTexts(request).join('\n');
        const [, play] = [...plays].find(([name]) => said.includes(name)) ?? [];
        const reply = play?.(request);
        if (!reply) throw new Error('nobody wrote this step');
        return reply;
      },
    });
    const folder = mkdtempSync(join(tmpdir(), 'pawl-crowd-'));
    mkdirSync(join(folder, 'home'), { mode: 0o711 });
    symlinkSync(inject('bundleCache'), join(folder, 'home', 'cache'));
    const order = {
      folder,
      taskQueue: `crowd-${randomBytes(5).toString('hex')}`,
      providerUrl: provider.baseUrl,
      servers: {
        temporalAddress: temporalAddress ?? inject('temporalAddress'),
        databaseUrl: await freshDatabase(inject('databaseUrl')),
      },
      forge,
      storeUrl,
    };
    const house = await openHouse(crowdConfig(order), { embedded: false, onProgress: () => {} });
    return new Crowd(order, { house, provider, plays });
  }

  private constructor(
    order: CrowdOrder,
    parts: Pick<Crowd, 'house' | 'provider'> & { readonly plays: Map<string, Play> },
  ) {
    this.#order = order;
    this.#plays = parts.plays;
    this.house = parts.house;
    this.provider = parts.provider;
    this.runs = createRuns(parts.house);
    this.bootNext();
  }

  /** Hands in one job more; `script` says what the model does in it, by the number of results it has seen. */
  async join(agent: CrowdAgent, script: (name: string) => readonly Reply[]): Promise<Member> {
    return await this.#join(agent, (name) => {
      const steps = script(name);
      return (request) => steps[countToolResults(request)];
    });
  }

  /** One that is done when its goal is; `play` says what the agent, its judge and the sceptics say. */
  async joinGoal(play: Play, goal: GoalWish): Promise<Member> {
    return await this.#join('alone', () => play, goal);
  }

  async #join(agent: CrowdAgent, playOf: (name: string) => Play, goal?: GoalWish): Promise<Member> {
    const name = `member-${randomBytes(5).toString('hex')}`;
    const workspace = join(this.#order.folder, 'workspaces', name);
    prepareFiles(workspace, false);
    this.#plays.set(name, playOf(name));
    const wanted = { tenant: 'default', key: name, text: name, agent, workspace: name };
    const submitted = await this.runs.submit({ ...wanted, ...(goal ? { goal } : {}) });
    if (submitted.kind !== 'accepted') throw new Error(submitted.kind);
    const { job, session } = submitted;
    const member = { name, job, session, workspace, house: this.house, provider: this.provider };
    this.#members.push(member);
    return member;
  }

  /** The next worker can boot while this one works. */
  bootNext(): void {
    this.#next = new CrowdWorker(this.#order);
    this.#workers.add(this.#next);
  }

  /** Starts a worker that loses these jobs where it is told to. */
  async worker(deaths: readonly Death[] = []): Promise<CrowdWorker> {
    if (!this.#next) this.bootNext();
    const worker = this.#next as CrowdWorker;
    this.#next = null;
    await worker.begin(deaths.map(([{ session, name }, boundary]) => ({ ...boundary, whose: [session, name] })));
    return worker;
  }

  /** Resolves when each job that this worker is to lose stands at its boundary. */
  async standing(worker: CrowdWorker, deaths: readonly Death[]): Promise<void> {
    await Promise.all(
      deaths.map(([member, { when, at }], place) =>
        this.#until(member, `it stands ${when} ${at}`, () => worker.stands(place)),
      ),
    );
  }

  /** One worker after the other, each killed when all it is to lose stand and all others have come to rest. */
  async play(deathsOf: ReadonlyMap<Member, readonly Boundary[]>): Promise<void> {
    const rounds = Math.max(0, ...[...deathsOf.values()].map(({ length }) => length));
    for (let round = 0; round <= rounds; round += 1) {
      const deaths = [...deathsOf].flatMap(([member, all]) =>
        all.slice(round, round + 1).map((boundary): Death => [member, boundary]),
      );
      const resting = [...deathsOf.keys()].filter((member) => !deaths.some(([dying]) => dying === member));
      const worker = await this.worker(deaths);
      if (round < rounds) this.bootNext();
      await Promise.all([this.standing(worker, deaths), ...resting.map((member) => this.rested(member))]);
      if (round < rounds) await worker.kill();
    }
  }

  /** Waits until the session has come to rest, which is after its turn has its end. */
  async rested(member: Member): Promise<void> {
    const { db } = this.house.database;
    const rest = and(eq(event.session, member.session), eq(event.kind, 'driver.ended'));
    await this.#until(member, 'the rest of the session', async () => (await db.$count(event, rest)) > 0);
  }

  /** Waits until a turn of it has its end. */
  async ended(member: Member, n = 1): Promise<typeof turn.$inferSelect> {
    const { db } = this.house.database;
    const which = eq(turn.id, `${member.session}/${n}`);
    return await this.#until(member, `the end of turn ${n}`, async () => {
      const [row] = await db.select().from(turn).where(which);
      return row?.endedAt ? row : null;
    });
  }

  async #until<T>(member: Member, what: string, look: () => Promise<T | null | false> | T | false): Promise<T> {
    return await until(what, look, LIMIT_MS).catch(async (error: Error) => {
      throw new Error(`${error.message}; so far: ${await this.#soFar(member)}`);
    });
  }

  async #soFar({ session }: Member): Promise<string> {
    const events = await readEvents(this.house.database.db, session, 0, 10_000).catch(() => []);
    const path = join(this.#order.folder, 'home/logs/worker.log');
    const log = existsSync(path) ? readFileSync(path, 'utf8') : '';
    return `${events.map(({ event: each }) => each.kind).join(' ')}\n${log.split('\n').slice(-15).join('\n')}`;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.kill()));
    for (const { session } of this.#members) await forgetInEngine(this.house, session);
    await this.house.close();
    await this.provider.close();
    rmSync(this.#order.folder, { recursive: true, force: true });
  }
}
