import { randomUUID } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { lstat, mkdir, open, readdir, rename, unlink } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { errorCode, Refused } from './answer.ts';
import { sha256 } from './workspace-file.ts';
import { openInside, type Place } from './workspace-path.ts';

/**
 * Puts new bytes in the place of a file, or makes the file and its folders. All or nothing: a temporary
 * file in the same folder is renamed over it; mode and owner stay. Aborting before the rename leaves no trace.
 */
export async function replaceFile(
  workspace: string,
  place: Place,
  bytes: Buffer,
  options: { readonly key: string; readonly signal: AbortSignal },
): Promise<void> {
  const parent = dirname(place.path);
  options.signal.throwIfAborted();
  await mkdir(parent, { recursive: true });
  const shown = relative(workspace, parent) || '.';
  const folder = await openInside(workspace, { path: parent, shown }, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    // Through the open folder, so that swapping the path for a link now changes nothing.
    const at = process.platform === 'linux' ? `/proc/self/fd/${folder.fd}` : parent;
    await writeAndRename(at, basename(place.path), bytes, options);
    await folder.sync().catch(() => {});
  } finally {
    await folder.close();
  }
}

async function writeAndRename(
  at: string,
  name: string,
  bytes: Buffer,
  { key, signal }: { readonly key: string; readonly signal: AbortSignal },
): Promise<void> {
  const prefix = `.pawl-${sha256(key).slice(0, 16)}-`;
  await dropLeftovers(at, prefix);
  const target = join(at, name);
  const old = await lstat(target).catch(() => null);
  if (old !== null && !old.isFile()) throw new Refused(`${name}: this is not a plain file any more.`, 'link');
  const temporary = join(at, `${prefix}${randomUUID()}.tmp`);
  try {
    await writeNew(temporary, bytes, old ?? (await lstat(`${at}/.`)), old !== null);
    signal.throwIfAborted();
    await rename(temporary, target);
  } catch (error) {
    await unlink(temporary).catch(() => {});
    // A folder that may not be written, or a file that is a mount point: only writing in place is left.
    if (old === null || !['EACCES', 'EPERM', 'EBUSY', 'EXDEV'].includes(errorCode(error) ?? '')) throw error;
    await writeInPlace(target, bytes);
  }
}

/** Temporary files of an earlier attempt of this call that was killed. */
async function dropLeftovers(at: string, prefix: string): Promise<void> {
  const names = await readdir(at).catch(() => []);
  for (const name of names) if (name.startsWith(prefix)) await unlink(join(at, name)).catch(() => {});
}

async function writeNew(path: string, bytes: Buffer, like: Stats, sameMode: boolean): Promise<void> {
  const handle = await open(
    path,
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
    0o666,
  );
  try {
    await handle.writeFile(bytes);
    const made = await handle.stat();
    if (made.uid !== like.uid || made.gid !== like.gid) await handle.chown(like.uid, like.gid).catch(() => {});
    if (sameMode) await handle.chmod(like.mode & 0o7777);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function writeInPlace(path: string, bytes: Buffer): Promise<void> {
  const handle = await open(path, constants.O_WRONLY | constants.O_TRUNC | constants.O_NOFOLLOW);
  try {
    await handle.writeFile(bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
}
