import { createHash } from 'node:crypto';
import { lstat, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { CALL_VARIABLE } from './reap.ts';

const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The whole environment of a command: nothing of the worker's, so no secret of it can be printed. */
export async function toolEnvironment(context: {
  readonly workspace: string;
  readonly idempotencyKey: string;
}): Promise<Record<string, string>> {
  return {
    PATH: searchPath(process.env.PATH),
    HOME: await homeOf(context.workspace),
    LANG: 'C.UTF-8',
    TERM: 'dumb',
    CI: '1',
    GIT_TERMINAL_PROMPT: '0',
    PAGER: 'cat',
    [CALL_VARIABLE]: context.idempotencyKey,
  };
}

/** The machine's programs, without the ones of this package and without relative entries. */
export function searchPath(path: string | undefined): string {
  const entries = (path ?? '').split(':').filter((entry) => isAbsolute(entry) && !entry.includes('/node_modules'));
  return entries.join(':') || DEFAULT_PATH;
}

/** A folder for caches and dot files, one for each workspace: they would spoil the workspace's own files. */
async function homeOf(workspace: string): Promise<string> {
  const name = createHash('sha256').update(workspace).digest('hex').slice(0, 16);
  const home = join(tmpdir(), `pawl-home-${name}`);
  try {
    await mkdir(home, { recursive: true, mode: 0o700 });
    const made = await lstat(home);
    // Somebody else may have put a folder or a link there before us.
    return made.isDirectory() && made.uid === process.getuid?.() ? home : workspace;
  } catch {
    return workspace;
  }
}
