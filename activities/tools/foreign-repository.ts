import { lstat, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Refused } from './answer.ts';
import { placeToRead } from './workspace-path.ts';

/** Parts of a git folder that no fetch looks at. */
const NOT_READ = new Set(['hooks', 'logs', 'modules', 'worktrees', 'lfs', 'index', 'COMMIT_EDITMSG', 'description']);
/** Files by which a repository says that a part of it lies elsewhere. */
const POINTERS = new Set(['commondir', 'objects/info/alternates', 'objects/info/http-alternates']);

/**
 * The git folder of a repository in the workspace, if everything in it lies in there: else we would read with our
 * own rights, and push, what its author could only name. Throws Refused.
 */
export async function gitFolderOf(workspace: string, folder: string): Promise<string> {
  const place = await placeToRead(workspace, folder);
  const gitDir = join(place.path, '.git');
  const found = await lstat(gitDir).catch(() => null);
  if (!found?.isDirectory()) {
    throw new Refused(`${folder}: there is no git repository of its own here (no .git folder).`, 'no_repository');
  }
  await refuseElsewhere(gitDir, '');
  return gitDir;
}

async function refuseElsewhere(gitDir: string, below: string): Promise<void> {
  for (const entry of await readdir(join(gitDir, below), { withFileTypes: true })) {
    const name = below === '' ? entry.name : `${below}/${entry.name}`;
    if (NOT_READ.has(name)) continue;
    if (entry.isDirectory()) await refuseElsewhere(gitDir, name);
    else if (!entry.isFile() || (POINTERS.has(name) && (await stat(join(gitDir, name))).size > 0)) {
      throw new Refused(
        `.git/${name}: a part of this repository lies elsewhere, so it can't be pushed. Clone it whole (git clone --no-hardlinks --dissociate).`,
        'repository_elsewhere',
      );
    }
  }
}
