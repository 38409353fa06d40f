import { sep } from 'node:path';
import { POLICY } from '../../workflows/core/policy.ts';
import type { ResourceLock } from './define-tool.ts';
import { fileName } from './workspace-path.ts';

/** The lock of a call that reads one file. */
export function readsFile(workspace: string, path: string): readonly ResourceLock[] {
  return [{ resource: lockName(workspace, path), mode: 'read' }];
}

/** The lock of a call that looks at a folder and at what lies in it. */
export function readsTree(workspace: string, path: string): readonly ResourceLock[] {
  return [{ resource: lockName(workspace, path), mode: 'read_tree' }];
}

/** The locks of a call that writes one file, and so changes each folder above it. */
export function writesFile(workspace: string, path: string): readonly ResourceLock[] {
  const resource = lockName(workspace, path);
  return [{ resource, mode: 'write' }, ...foldersAbove(resource).map(below)];
}

function below(resource: string): ResourceLock {
  return { resource, mode: 'write_below' };
}

/** The workspace first; none above the workspace itself. */
function foldersAbove(name: string): string[] {
  if (name === '.') return [];
  const parts = name.split(sep);
  return ['.', ...parts.slice(1).map((_, count) => parts.slice(0, count + 1).join(sep))];
}

/** Cut at a depth, so that no path, however deep, takes more than so many keys. */
function lockName(workspace: string, path: string): string {
  return fileName(workspace, path).split(sep).slice(0, POLICY.tools.lockDepth).join(sep);
}
