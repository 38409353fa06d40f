import { basename } from 'node:path';
import type { Submission } from '../../client/submit.ts';
import type { HookDefinition } from '../../worker/config/guards.ts';
import { type Config, resolveConfig } from '../../worker/config/load.ts';
import { SLOW_TOOLS, untilTold } from '../support/slow-tools.ts';
import type { Patience } from '../../workflows/core/policy.ts';
import type { Boundary } from './kill-at.ts';

/** What a process of a crash test is told on its command line. */
export interface ProcessOrder {
  /** Where everything of this run lies. */
  readonly folder: string;
  readonly taskQueue: string;
  readonly providerUrl: string;
  /** Null: the process brings both servers itself, and owns them. */
  readonly servers: { readonly temporalAddress: string; readonly databaseUrl: string } | null;
  readonly dieAt: Boundary | null;
  readonly hooks?: keyof typeof HOOKS;
  /** The model's window, where it is to become too small. */
  readonly contextTokens?: number;
  /** How long it bears with a provider that is away. */
  readonly patience?: Partial<Patience>;
}

/** What it says when it is ready. */
export interface ProcessReady {
  readonly temporalAddress: string;
  readonly databaseUrl: string | null;
  readonly pids: { readonly temporal?: number; readonly postgres?: number };
}

/** The one job of a run: whoever hands it in, it is the same. */
export function submissionOf(run: string): Submission {
  return { tenant: 'default', key: run, text: run, workspace: 'ws' };
}

const HOOKS = {
  /** They write down what they are asked and told, in the folder of the run. */
  noting: hooksThatNote,
  /** The first ask of a turn takes until it is told, in workspaces that are named so. */
  waiting: (): HookDefinition[] => [
    {
      event: 'StopGate',
      async run({ workspace, ask }, signal) {
        if (basename(workspace).startsWith('ending') && ask === 1) await untilTold({ workspace, signal }, 'asking');
        return null;
      },
    },
  ],
} as const;

/** The gate blocks once a turn; of the three kinds of stop each is written down. */
function hooksThatNote(folder: string): HookDefinition[] {
  const ask =
    'asked=$(cat); echo "$asked" >> "$0"; case "$asked" in *\'"stopHookActive":false\'*) echo More. >&2; exit 2; esac';
  return [
    { event: 'StopGate', run: { command: 'sh', args: ['-c', ask, `${folder}/asked`] } },
    ...(['Stop', 'StopFailure', 'StopCancelled'] as const).map((event) => ({
      event,
      run: { command: 'sh', args: ['-c', 'cat >> "$0"', `${folder}/told`] },
    })),
  ];
}

/** The configuration that all processes of a run share. */
export function crashConfig(order: Omit<ProcessOrder, 'dieAt'>): Config {
  const { folder, taskQueue, providerUrl, servers, hooks, patience = {} } = order;
  const tools = ['read_file', 'write_file', 'edit_file', 'list_files', 'shell'];
  const limits = order.contextTokens ? { contextTokens: order.contextTokens, outputTokens: 1_000 } : {};
  const known = { model: 'scripted', provider: 'scripted', instructions: 'You are tested.' };
  const agent = { name: 'tester', ...known, tools, limits, patience, agents: ['tester'] };
  const asks = { name: 'asks', attended: true, permissions: { mode: 'default' as const } };
  const config = resolveConfig(
    {
      agents: [
        agent,
        { ...agent, ...asks, tools: ['write_file', 'list_files', 'wait_for'] },
        { ...agent, name: 'small', limits: { contextTokens: 40_000, outputTokens: 1_000 } },
        { ...agent, name: 'slow', tools: SLOW_TOOLS.map(({ name }) => name) },
      ],
      tools: SLOW_TOOLS,
      providers: { scripted: { baseUrl: providerUrl, apiKeyEnv: null } },
      taskQueue,
      hooks: hooks ? HOOKS[hooks](folder) : [],
    },
    null,
  );
  return {
    ...config,
    home: `${folder}/home`,
    workspaceRoot: `${folder}/workspaces`,
    temporalAddress: servers?.temporalAddress ?? null,
    databaseUrl: servers?.databaseUrl ?? null,
  };
}
