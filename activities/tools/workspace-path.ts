import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readlink, realpath, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { errorCode, Refused } from './answer.ts';
import { isWellFormed } from './text.ts';

/** A path inside the workspace. */
export interface Place {
  /** Real path: no part of it was a link when it was looked at. */
  readonly path: string;
  /** How the model is shown it: relative to the workspace. */
  readonly shown: string;
}

/** Resolves a path that must exist. Links are followed as long as they stay inside the workspace. */
export async function placeToRead(workspace: string, given: string): Promise<Place> {
  const { real, missing } = await resolveInside(workspace, given);
  if (missing.length > 0) {
    throw new Refused(`${given}: there is no such file or folder. Use list_files to see what is there.`, 'ENOENT');
  }
  return placeOf(workspace, real);
}

/** Resolves a path for writing: it may be missing, but what is there must be a plain file. */
export async function placeToWrite(workspace: string, given: string): Promise<Place> {
  const target = lexically(workspace, given);
  if (target === workspace) throw new Refused(`${given || '.'}: this is the workspace folder, not a file.`, 'EISDIR');
  const { real, missing } = await resolveInside(workspace, dirname(target), given);
  const path = join(real, ...missing, basename(target));
  const leaf = missing.length > 0 ? null : await lstatOrNull(path);
  if (leaf?.isSymbolicLink()) {
    throw new Refused(
      `${given}: this is a symbolic link, and links are not written through. Name the real file.`,
      'link',
    );
  }
  if (leaf?.isDirectory()) throw new Refused(`${given}: this is a folder, not a file.`, 'EISDIR');
  if (leaf !== null && !leaf.isFile()) throw new Refused(`${given}: this is not a plain file.`, 'not_a_file');
  return placeOf(workspace, path);
}

/** Opens a place without following a link, and makes sure that what was opened is still inside. */
export async function openInside(workspace: string, place: Place, flags: number): Promise<FileHandle> {
  const handle = await open(place.path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    if (!isInside(workspace, await realPathOf(handle, place))) throw outside(place.shown);
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Whether a path is a folder or lies in it; `/ws-evil` does not lie in `/ws`. */
export function isInside(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === '' || (way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

/** The same name for the same file, absolute or not, as far as the text alone can tell. */
export function fileName(workspace: string, given: string): string {
  return relative(workspace, resolve(workspace, given)) || '.';
}

function lexically(workspace: string, given: string): string {
  if (given.includes('\0'))
    throw new Refused('The path has a NUL character in it, which no file name can have.', 'bad_path');
  // It would name another file, with a stand-in in it.
  if (!isWellFormed(given))
    throw new Refused('The path has half of a surrogate pair in it. Write the whole character.', 'bad_path');
  const target = resolve(workspace, given);
  if (!isInside(workspace, target)) throw outside(given);
  return target;
}

/** `named`: how the model wrote it, for what it is told. */
async function resolveInside(
  workspace: string,
  given: string,
  named = given,
): Promise<{ real: string; missing: string[] }> {
  const missing: string[] = [];
  for (let at = lexically(workspace, given); ; at = dirname(at)) {
    const real = await realpathOrNull(at);
    if (real !== null) {
      if (!isInside(workspace, real)) throw outside(named);
      return { real, missing };
    }
    // A link to nothing would be a way to create a file anywhere.
    if ((await lstatOrNull(at)) !== null) throw new Refused(`${named}: a link on this path leads nowhere.`, 'link');
    missing.unshift(basename(at));
  }
}

async function realPathOf(handle: FileHandle, place: Place): Promise<string> {
  if (process.platform === 'linux') return readlink(`/proc/self/fd/${handle.fd}`);
  const [opened, real] = await Promise.all([handle.stat(), realpath(place.path)]);
  const named = await stat(real);
  if (opened.dev !== named.dev || opened.ino !== named.ino) throw outside(place.shown);
  return real;
}

function placeOf(workspace: string, path: string): Place {
  return { path, shown: relative(workspace, path) || '.' };
}

function outside(given: string): Refused {
  return new Refused(
    `${given}: this is outside the workspace. Use a path inside it, relative to the workspace folder.`,
    'outside_workspace',
  );
}

async function realpathOrNull(path: string): Promise<string | null> {
  return realpath(path).catch(nullIfMissing);
}

async function lstatOrNull(path: string) {
  return lstat(path).catch(nullIfMissing);
}

function nullIfMissing(error: unknown): null {
  if (errorCode(error) === 'ENOENT') return null;
  throw error;
}
