import { execFile } from 'node:child_process';
import { createWriteStream, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ANSWER_WITHIN_MS = 10_000;
const DOWNLOAD_WITHIN_MS = 180_000;

/** What the SDK's test environment does too: the newest release from Temporal's own address, into `<cache>/bin`. */
export async function downloadTemporal(cache: string, onProgress: (line: string) => void): Promise<string> {
  onProgress('fetching the Temporal server from temporal.download');
  const bin = join(cache, 'bin');
  mkdirSync(bin, { recursive: true });
  const work = mkdtempSync(join(cache, 'download-'));
  try {
    await download(address(), join(work, 'temporal.tar.gz'));
    await run('tar', ['-xzf', 'temporal.tar.gz', 'temporal'], { cwd: work, timeout: 60_000 });
    renameSync(join(work, 'temporal'), join(bin, 'temporal'));
  } catch (error) {
    throw new Error(`temporal.download can't be used: ${reason(error)}`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return join(bin, 'temporal');
}

function address(): string {
  const arch = process.arch === 'x64' ? 'amd64' : process.arch;
  return `https://temporal.download/cli/archive/latest?platform=${process.platform}&arch=${arch}`;
}

async function download(url: string, path: string): Promise<void> {
  const giveUp = new AbortController();
  const answer = setTimeout(() => giveUp.abort(new Error('no answer within 10 s')), ANSWER_WITHIN_MS);
  const whole = setTimeout(() => giveUp.abort(new Error('too slow')), DOWNLOAD_WITHIN_MS);
  try {
    const response = await fetch(url, { signal: giveUp.signal });
    clearTimeout(answer);
    if (!response.ok || response.body === null) throw new Error(`status ${response.status}`);
    await pipeline(Readable.fromWeb(response.body as ReadableStream), createWriteStream(path), {
      signal: giveUp.signal,
    });
  } finally {
    clearTimeout(answer);
    clearTimeout(whole);
  }
}

function reason(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? `${message} (${cause.message})` : message;
}
