import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { inject } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');
const MIGRATIONS = 'activities/store/migrations';

/**
 * Folder of the whole program as plain JavaScript, made once a test run: these tests start processes by the
 * dozen, and without the loader each of them costs half as much.
 */
export function compiledProgram(): string {
  const cache = inject('bundleCache');
  const folder = join(cache, 'compiled');
  if (existsSync(folder)) return folder;
  const half = mkdtempSync(join(cache, 'compiling-'));
  run(TSC, '-p', ROOT, '--noEmit', 'false', '--noCheck', '--outDir', half, '--rootDir', ROOT);
  cpSync(join(ROOT, MIGRATIONS), join(half, MIGRATIONS), { recursive: true });
  writeFileSync(join(half, 'package.json'), '{"type":"module"}');
  symlinkSync(join(ROOT, 'node_modules'), join(half, 'node_modules'));
  if (!existsSync(folder)) renameSync(half, folder);
  // Its own workflow bundle, which no worker should have to wait for.
  const bundle = pathToFileURL(join(folder, 'worker/bundle.js')).href;
  run('--input-type=module', '-e', `await (await import('${bundle}')).workflowBundle('${cache}')`);
  return folder;
}

function run(...args: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`the program could not be compiled: ${stdout}${stderr}`);
}
