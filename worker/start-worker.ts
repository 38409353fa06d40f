import { join } from 'node:path';
import { ScheduleAlreadyRunning, ScheduleOverlapPolicy } from '@temporalio/client';
import {
  type ActivityInterceptorsFactory,
  NativeConnection,
  Runtime,
  Worker,
  type WorkerOptions,
} from '@temporalio/worker';
import { type Logger, pino } from 'pino';
import type { Deps } from '../activities/deps.ts';
import { type Activities, createActivities } from '../activities/index.ts';
import { createMcpHub } from '../activities/mcp/hub.ts';
import { withRemoteTools } from '../activities/mcp/remote-registry.ts';
import { temporalEngine } from '../activities/engine/temporal-engine.ts';
import { createChatCompletionsPort } from '../activities/model/chat-completions.ts';
import type { SchemaRules } from '../activities/model/lower-schema.ts';
import type { ModelPort } from '../activities/model/port.ts';
import { createResponsesPort } from '../activities/model/responses.ts';
import { thisHost, thisProcess } from '../activities/process/identity.ts';
import { createMasker, secretsOf } from '../activities/secrets/mask.ts';
import { createReporter } from '../activities/reports/reporter.ts';
import { CallMemory } from '../activities/store/call-memory.ts';
import { StreamNotifier } from '../activities/store/notify.ts';
import { ChainCache } from '../activities/store/transcript.ts';
import { POLICY } from '../workflows/core/policy.ts';
import { workflowBundle } from './bundle.ts';
import type { Config } from './config/load.ts';
import { hostQueue } from './catalogue.ts';
import { keysInFiles, type Provider, readKey, requireKeysOf } from './config/providers.ts';
import type { House } from './house.ts';
import { requireSharedRoot } from './shared-root.ts';

export interface RunningWorker {
  /** Takes no more work, lets running activities finish within their grace, then returns. */
  stop(): Promise<void>;
}

export interface WorkerSettings {
  /** Called once when the worker stops by itself; it must then be started again. */
  onFault(error: unknown): void;
  readonly log?: Logger;
  /** What stands around each activity, in the engine's own terms. */
  readonly interceptors?: ActivityInterceptorsFactory;
}

/** A worker for everything: workflows, activities of the main queue, and calls on this machine's files. */
export async function startWorker(house: House, settings: WorkerSettings): Promise<RunningWorker> {
  const { config } = house;
  requireKeysOf(config);
  await requireSharedRoot(house);
  const log = settings.log ?? fileLog(config.home);
  installRuntime(log);
  const connection = await NativeConnection.connect({ address: house.addresses.temporal });
  const notifier = new StreamNotifier(house.database.pool);
  const hub = createMcpHub(config.mcp, { log });
  const tools = hub.servers.length > 0 ? withRemoteTools(config.registry, hub) : config.registry;
  await tools.refresh?.();
  const chains = new ChainCache();
  const { hooks } = config;
  const reporter = createReporter({ database: house.database, chains, hooks, notifier, log });
  const activities = activitiesOf(house, { notifier, log, tools, chains, reporter });
  const bundle = await workflowBundle(join(config.home, 'cache'));
  const interceptors = { activity: settings.interceptors ? [settings.interceptors] : [] };
  const common = { connection, namespace: config.temporalNamespace, interceptors, ...SETTINGS };
  const workers = [
    await Worker.create({ ...common, taskQueue: config.taskQueue, workflowBundle: { codePath: bundle }, activities }),
  ];
  if (hostQueue(config) !== config.taskQueue) {
    workers.push(await Worker.create({ ...common, taskQueue: hostQueue(config), activities: onFiles(activities) }));
  }
  await ensureRecovery(house);
  return run(workers, settings, async () => {
    await reporter.close();
    notifier.close();
    await hub.close();
    await connection.close();
  });
}

/** What needs a session's files. */
function onFiles({
  runTool,
  gate,
  settleApproval,
  stopGate,
  checkGoal,
  goalStopGate,
}: Activities): Pick<Activities, 'runTool' | 'gate' | 'settleApproval' | 'stopGate' | 'checkGoal' | 'goalStopGate'> {
  return { runTool, gate, settleApproval, stopGate, checkGoal, goalStopGate };
}

/** Measured: see docs/decisions; the heartbeat throttle bounds how late a cancel arrives. */
const SETTINGS = {
  maxHeartbeatThrottleInterval: POLICY.heartbeat.throttleMs,
  defaultHeartbeatThrottleInterval: POLICY.heartbeat.throttleMs,
  stickyQueueScheduleToStartTimeout: '1s',
  maxCachedWorkflows: 200,
  maxConcurrentActivityTaskExecutions: 100,
  shutdownGraceTime: '10s',
  shutdownForceTime: '20s',
} satisfies Partial<WorkerOptions>;

function run(workers: readonly Worker[], settings: WorkerSettings, release: () => Promise<void>): RunningWorker {
  let stopping = false;
  const ended = Promise.all(workers.map((worker) => worker.run())).then(
    () => {},
    (error: unknown) => {
      if (!stopping) settings.onFault(error);
      shutdown(workers);
    },
  );
  return {
    async stop() {
      stopping = true;
      shutdown(workers);
      await ended;
      await release();
    },
  };
}

function shutdown(workers: readonly Worker[]): void {
  for (const worker of workers) {
    if (worker.getState() === 'RUNNING') worker.shutdown();
  }
}

function activitiesOf(
  house: House,
  given: Pick<Deps, 'notifier' | 'log' | 'tools' | 'chains' | 'reporter'>,
): Activities {
  const { config } = house;
  const ports = new Map(Object.values(config.providers).map((provider) => [provider.name, portOf(provider)]));
  const keyNames = [
    ...Object.values(config.providers).flatMap(({ key }) => (key.kind === 'variable' ? [key.name] : [])),
    ...config.registry.names.flatMap((name) => {
      const found = config.registry.lookup(name);
      return found.ok ? (found.tool.secretEnv ?? []) : [];
    }),
  ];
  return createActivities({
    ...given,
    database: house.database,
    calls: new CallMemory(),
    engine: temporalEngine(house.temporal, config.taskQueue),
    model: (name) => ports.get(name) ?? NO_SUCH_PROVIDER,
    nativeAnswers: (name) => answersOf(config.providers[name]),
    agents: agentsOf(config),
    hooks: config.hooks,
    masker: createMasker(() => [...secretsOf(process.env, keyNames), ...secretsOf(keysInFiles(config.providers))]),
    host: thisHost(),
    process: thisProcess(),
  });
}

function agentsOf({ agents, namedLimits }: Config): Deps['agents'] {
  return (name) => {
    const agent = agents.find((each) => each.name === name);
    return agent ? { agent, named: namedLimits[name] ?? [] } : null;
  };
}

function answersOf(provider: Provider | undefined): SchemaRules | null {
  return provider?.structuredOutput === 'native' ? provider.schemas : null;
}

function portOf({ baseUrl, key, wire, schemas, reasoning }: Provider): ModelPort {
  const options = { baseUrl, schemas, reasoning, apiKey: () => readKey(key) };
  return wire === 'responses' ? createResponsesPort(options) : createChatCompletionsPort(options);
}

/** A session may be pinned to a provider that the config has dropped since. */
const NO_SUCH_PROVIDER: ModelPort = {
  sample: () =>
    Promise.resolve({
      kind: 'invalid_request',
      status: 0,
      usage: { inputTokens: 0, cachedTokens: 0, outputTokens: 0, reasoningTokens: 0, complete: true },
      note: 'The provider of this agent is not in the config any more.',
    }),
};

/** A Schedule, so that recovery comes back within a minute whatever happens to its workflow. */
async function ensureRecovery(house: House): Promise<void> {
  const { taskQueue } = house.config;
  try {
    await house.temporal.schedule.create({
      scheduleId: `${taskQueue}-recovery`,
      spec: { intervals: [{ every: '30s' }] },
      policies: { overlap: ScheduleOverlapPolicy.SKIP },
      action: {
        type: 'startWorkflow',
        workflowType: 'recoveryWorkflow',
        taskQueue,
        workflowId: `${taskQueue}-recovery`,
        args: [],
      },
      state: { triggerImmediately: true },
    });
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error;
  }
}

let installed = false;

/** The engine's own log lines go to ours: at most warnings, without content. */
function installRuntime(log: Logger): void {
  if (installed) return;
  installed = true;
  const pass = (level: 'warn' | 'error') => (message: string) => log[level]({ source: 'temporal' }, message);
  const drop = () => {};
  Runtime.install({
    logger: { log: drop, trace: drop, debug: drop, info: drop, warn: pass('warn'), error: pass('error') },
    shutdownSignals: [],
  });
}

function fileLog(home: string): Logger {
  return pino(
    { level: 'info' },
    pino.destination({ dest: join(home, 'logs', 'worker.log'), mkdir: true, sync: false }),
  );
}
