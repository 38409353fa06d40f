import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleWorkflowCode } from '@temporalio/worker';

const WORKFLOWS = fileURLToPath(new URL('../workflows', import.meta.url));
const { version } = createRequire(import.meta.url)('@temporalio/worker/package.json') as { version: string };

/**
 * Path of the workflow bundle for exactly these sources, built once and kept in `cache`: a worker that is
 * started again must not spend seconds on bundling while turns wait for it.
 */
export async function workflowBundle(cache: string): Promise<string> {
  const path = join(cache, `workflows-${sourceHash()}.js`);
  if (existsSync(path)) return path;
  mkdirSync(cache, { recursive: true });
  const { code } = await bundleWorkflowCode({
    workflowsPath: WORKFLOWS,
    logger: QUIET,
    webpackConfigHook: withModernSyntax,
  });
  const half = `${path}.${process.pid}`;
  writeFileSync(half, code);
  renameSync(half, path);
  return path;
}

type BundleHook = NonNullable<Parameters<typeof bundleWorkflowCode>[0]['webpackConfigHook']>;

/** The engine's own default rewrites spreads into helper calls, which the turn's state, copied at each event, pays for. */
const withModernSyntax: BundleHook = (config) => {
  for (const rule of config.module?.rules ?? []) {
    const use = typeof rule === 'object' ? rule?.use : null;
    if (use && typeof use === 'object' && 'options' in use && typeof use.options === 'object') {
      Object.assign(use.options['jsc'], { target: 'es2022' });
    }
  }
  return config;
};

function sourceHash(): string {
  const hash = createHash('sha256')
    .update(version)
    .update(readFileSync(fileURLToPath(import.meta.url)));
  for (const file of filesOf(WORKFLOWS)) hash.update(file).update(readFileSync(file));
  return hash.digest('hex').slice(0, 16);
}

function filesOf(folder: string): string[] {
  return readdirSync(folder)
    .sort()
    .map((name) => join(folder, name))
    .flatMap((path) => (statSync(path).isDirectory() ? filesOf(path) : [path]));
}

const silent = () => {};
const QUIET = { log: silent, trace: silent, debug: silent, info: silent, warn: silent, error: silent };
