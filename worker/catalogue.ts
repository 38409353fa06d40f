import { createHash } from 'node:crypto';
import { mkdirSync, realpathSync } from 'node:fs';
import { hostname } from 'node:os';
import { isAbsolute, relative, resolve } from 'node:path';
import { type UsableSchema, usableSchema } from '../activities/answer/output-schema.ts';
import { hasTool, usableCheck } from '../activities/goal/tool-check.ts';
import { isRemoteName } from '../activities/mcp/names.ts';
import type { JudgeCheck } from '../activities/store/goal-plan.ts';
import type { Workspace } from '../activities/store/intake.ts';
import type { StoredAgent } from '../activities/store/schema.ts';
import type { Config } from './config/load.ts';

/** What a submitter may name: the agents of the config, and workspaces under its root. */
export interface Catalogue {
  readonly names: readonly string[];
  /** The agent of that name, or the first one. */
  agent(name: string | undefined): StoredAgent | null;
  /** Whether answers can be judged by this JSON Schema. */
  outputSchema(schema: unknown): UsableSchema;
  /** Whether a tool may check the goals of an agent. Tools of MCP servers are known to workers only: they look again. */
  toolCheck: JudgeCheck;
  workspace(path: string | undefined, jobKey: string): { ok: true; workspace: Workspace } | { ok: false; why: string };
}

export function createCatalogue(config: Config): Catalogue {
  return {
    names: config.agents.map((agent) => agent.name),
    agent: (name) => config.agents.find((agent) => name === undefined || agent.name === name) ?? null,
    outputSchema: usableSchema,
    toolCheck: (agent, check) => {
      const lacking = hasTool(agent, check);
      if (lacking || isRemoteName(check.tool)) return lacking ?? { ok: true };
      return usableCheck(check, config.registry.lookup(check.tool));
    },
    workspace: (path, jobKey) => findWorkspace(config, path, jobKey),
  };
}

/** Queue of the workers on the machine that has the files. */
export function hostQueue(config: Pick<Config, 'taskQueue' | 'workspaceKind'>): string {
  return config.workspaceKind === 'shared'
    ? config.taskQueue
    : `${config.taskQueue}@${process.env.PAWL_HOST_ID || hostname()}`;
}

function findWorkspace(config: Config, path: string | undefined, jobKey: string): ReturnType<Catalogue['workspace']> {
  const root = ensureFolder(config.workspaceRoot);
  const own = createHash('sha256').update(jobKey).digest('hex').slice(0, 16);
  if (path === undefined) return accepted(config, ensureFolder(resolve(root, own)));
  let real: string;
  try {
    real = realpathSync(resolve(root, path));
  } catch {
    return {
      ok: false,
      why: `The workspace ${path} does not exist under the workspace root; create it first, or leave it out.`,
    };
  }
  if (!isInside(root, real)) {
    return { ok: false, why: `The workspace ${path} is outside the workspace root; name a folder inside it.` };
  }
  if (isInside(real, config.home) || real === root) {
    return { ok: false, why: `The workspace ${path} would hold Pawl’s own files; name a folder of its own.` };
  }
  return accepted(config, real);
}

function accepted(config: Config, path: string): ReturnType<Catalogue['workspace']> {
  return { ok: true, workspace: { kind: config.workspaceKind, path, queue: hostQueue(config) } };
}

function ensureFolder(path: string): string {
  mkdirSync(path, { recursive: true });
  return realpathSync(path);
}

function isInside(parent: string, child: string): boolean {
  const way = relative(parent, child);
  return way === '' || (!way.startsWith('..') && !isAbsolute(way));
}
