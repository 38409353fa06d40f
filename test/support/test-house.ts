import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { asc, eq } from 'drizzle-orm';
import { pino } from 'pino';
import { inject } from 'vitest';
import { signalSession } from '../../activities/engine/temporal-engine.ts';
import { readEvents } from '../../activities/store/events.ts';
import { type AcceptedJob, storeInput, storeJob } from '../../activities/store/intake.ts';
import { session, turn } from '../../activities/store/schema.ts';
import { ChainCache, loadChain } from '../../activities/store/transcript.ts';
import type { Tool } from '../../activities/tools/define-tool.ts';
import { type ScriptedProvider, type ScriptedProviderOptions, startScriptedProvider } from '../../testing/index.ts';
import { type Config, resolveConfig } from '../../worker/config/load.ts';
import type { AgentDefinition, PawlDefinition } from '../../worker/config/define.ts';
import { type House, openHouse } from '../../worker/house.ts';
import { type RunningWorker, startWorker, type WorkerSettings } from '../../worker/start-worker.ts';
import type { RecordedEvent } from '../../workflows/core/journal.ts';
import type { InputKind } from '../../workflows/core/inputs.ts';
import type { Message } from '../../workflows/core/transcript.ts';
import { testDatabase } from './database.ts';
import { until } from './until.ts';

export interface TestHouse {
  readonly house: House;
  readonly provider: ScriptedProvider;
  readonly workspaces: string;
  readonly config: Config;
  submit(
    text: string,
    options?: { readonly key?: string; readonly workspace?: string; readonly agent?: string },
  ): Promise<AcceptedJob>;
  send(session: string, kind: InputKind, text: string): Promise<string>;
  /** The n-th turn of a session once it has its end. */
  ended(session: string, n?: number, limitMs?: number): Promise<typeof turn.$inferSelect>;
  events(session: string): Promise<RecordedEvent[]>;
  transcript(session: string): Promise<Message[]>;
  /** `deployed`: what this worker's config has other than the house. */
  startWorker(deployed?: Partial<Config>): Promise<RunningWorker>;
  close(): Promise<void>;
}

export interface TestHouseOptions extends ScriptedProviderOptions {
  readonly agent?: Partial<AgentDefinition>;
  /** More agents, by name; each is like the first one but for what it says. */
  readonly others?: readonly (Partial<AgentDefinition> & { readonly name: string })[];
  /** More of the config: hooks, MCP servers, where the files are. */
  readonly definition?: Pick<PawlDefinition, 'hooks' | 'mcp' | 'workspaceKind'>;
  readonly tools?: readonly Tool[];
  /** Beside `scripted` and `responses`, which speak the two wires to the scripted provider. */
  readonly providers?: (baseUrl: string) => NonNullable<PawlDefinition['providers']>;
  /** What stands around the activities of its workers. */
  readonly interceptors?: NonNullable<WorkerSettings['interceptors']>;
  /** Start a worker at once; true if left out. */
  readonly worker?: boolean;
  /** An engine of its own, where that one is to be killed. */
  readonly temporalAddress?: string;
}

/** Everything a user gets, on the run's shared servers: own database, own task queue, scripted provider. */
export async function testHouse(options: TestHouseOptions = {}): Promise<TestHouse> {
  const provider = await startScriptedProvider(options);
  const database = await testDatabase();
  const folder = mkdtempSync(join(tmpdir(), 'pawl-house-'));
  const config = testConfig(options, provider.baseUrl, folder, database.url);
  await database.close();
  const house = await openHouse(config, { embedded: false, onProgress: () => {} });
  const workers = new Set<RunningWorker>();
  const chains = new ChainCache();
  const { db } = house.database;

  async function tell(id: string): Promise<void> {
    await signalSession(house.temporal, house.taskQueue, id);
  }
  const self: TestHouse = {
    house,
    provider,
    config,
    workspaces: config.workspaceRoot,
    async submit(text, { key = randomBytes(8).toString('hex'), workspace, agent: name } = {}) {
      const found = house.catalogue.workspace(workspace, key);
      const agent = house.catalogue.agent(name);
      if (!found.ok || !agent) throw new Error('the test names no usable workspace or agent');
      const stored = await storeJob(db, {
        tenant: 'default',
        key,
        fingerprint: text,
        agent,
        workspace: found.workspace,
        text,
        ticket: null,
        sender: null,
      });
      if (stored.kind !== 'accepted') throw new Error(stored.kind);
      await tell(stored.session);
      return stored;
    },
    async send(id, kind, text) {
      const input = `in_${randomBytes(8).toString('hex')}`;
      await storeInput(db, { id: input, session: id, kind, text, sender: null });
      await tell(id);
      return input;
    },
    ended: (id, n = 1, limitMs = 30_000) =>
      until(
        `the end of turn ${id}/${n}`,
        async () => {
          const [row] = await db
            .select()
            .from(turn)
            .where(eq(turn.id, `${id}/${n}`));
          return row?.endedAt ? row : null;
        },
        limitMs,
      ),
    events: (id) => readEvents(db, id, 0, 100_000),
    async transcript(id) {
      const [row] = await db.select().from(session).where(eq(session.id, id)).orderBy(asc(session.id));
      return (await loadChain(db, chains, row?.head ?? '')).map((link) => link.body);
    },
    async startWorker(deployed = {}) {
      const worker = await startWorker(
        { ...house, config: { ...house.config, ...deployed } },
        {
          log: pino({ level: process.env.TEST_LOG ?? 'silent' }),
          onFault: (error) => console.error(error),
          ...(options.interceptors ? { interceptors: options.interceptors } : {}),
        },
      );
      workers.add(worker);
      const stop = async () => {
        if (workers.delete(worker)) await worker.stop();
      };
      return { stop };
    },
    async close() {
      await Promise.all([...workers].map((worker) => worker.stop()));
      await house.close();
      await provider.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  if (options.worker !== false) await self.startWorker();
  return self;
}

function testConfig(options: TestHouseOptions, baseUrl: string, folder: string, databaseUrl: string): Config {
  const agent: AgentDefinition = {
    name: 'tester',
    model: 'scripted',
    provider: 'scripted',
    instructions: 'You are tested.',
    tools: [
      'read_file',
      'write_file',
      'edit_file',
      'list_files',
      'search_text',
      'shell',
      ...(options.tools ?? []).map((tool) => tool.name),
    ],
    ...options.agent,
  };
  const config = resolveConfig(
    {
      ...options.definition,
      agents: [agent, ...(options.others ?? []).map((other) => ({ ...agent, ...other }))],
      tools: options.tools ?? [],
      providers: {
        scripted: { baseUrl, apiKeyEnv: null },
        responses: { baseUrl, apiKeyEnv: null, wire: 'responses' },
        ...options.providers?.(baseUrl),
      },
      taskQueue: `t-${randomBytes(6).toString('hex')}`,
    },
    null,
  );
  mkdirSync(join(folder, 'home'));
  symlinkSync(inject('bundleCache'), join(folder, 'home', 'cache'));
  return {
    ...config,
    home: join(folder, 'home'),
    workspaceRoot: join(folder, 'workspaces'),
    temporalAddress: options.temporalAddress ?? inject('temporalAddress'),
    databaseUrl,
  };
}
