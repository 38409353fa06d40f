import { realpath } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import type { Effect } from '../../workflows/core/tools.ts';
import type { Subject, Tool } from '../tools/define-tool.ts';
import { isInside } from '../tools/workspace-path.ts';
import type { CallFacts } from './permissions.ts';

/** What a call is about, as its tool tells it; null for a tool that does not. */
export function subjectOf(tool: Tool, args: unknown): Subject | null {
  return tool.subject?.(args) ?? null;
}

/** Reads links: run it where the workspace is. */
export async function factsOf(
  tool: Tool,
  effect: Effect,
  subject: Subject | null,
  workspace: string,
): Promise<CallFacts> {
  const names = subject && isPath(subject) ? await namesOf(workspace, subject.text) : [subject?.text ?? ''];
  return {
    tool: tool.name,
    // Of what was pinned and what the tool says today, the more dangerous one.
    effect: effect === 'none' ? tool.effect : effect,
    subject: subject && { kind: subject.kind, names },
    isWorkspaceEdit: tool.within === 'workspace' && subject !== null && isPath(subject) && names.every(isPlainFile),
  };
}

function isPath({ kind }: Subject): boolean {
  return kind === 'path' || kind === 'tree';
}

/** A path as it is written and where its links lead: relative to the workspace, absolute if outside. */
export async function namesOf(workspace: string, given: string): Promise<string[]> {
  const target = resolve(workspace, given);
  const root = await realpath(workspace).catch(() => workspace);
  return [...new Set([nameIn(workspace, target), nameIn(root, await followed(target))])];
}

/** The real path of as much as there is, and the rest as it is written. */
async function followed(target: string): Promise<string> {
  const missing: string[] = [];
  for (let at = target; ; at = dirname(at)) {
    const real = await realpath(at).catch(() => null);
    if (real !== null) return join(real, ...missing);
    if (at === dirname(at)) return target;
    missing.unshift(basename(at));
  }
}

function nameIn(workspace: string, path: string): string {
  return isInside(workspace, path) ? relative(workspace, path).split(sep).join('/') || '.' : path;
}

/** Inside, and not git's own: whoever writes a hook or a config there runs commands. */
function isPlainFile(name: string): boolean {
  return !name.startsWith('/') && name !== '.' && !name.split('/').some((part) => part.toLowerCase() === '.git');
}
