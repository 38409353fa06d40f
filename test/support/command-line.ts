import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { until } from './until.ts';

const PAWL = fileURLToPath(new URL('../../bin/pawl.js', import.meta.url));

interface CommandLine {
  readonly folder: string;
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
  /** Comes through its standard input once it has begun to read; without it, it has none. */
  readonly stdin?: string;
}

/** The command as a user types it, in a folder without a config. */
export async function pawl(args: readonly string[], { folder, home, env, stdin }: CommandLine) {
  const { PATH = '' } = process.env;
  const child = spawn(process.execPath, [PAWL, ...args], {
    cwd: folder,
    env: { PATH, HOME: folder, PAWL_HOME: home, OPENAI_API_KEY: 'none', ...env },
    stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  });
  let [out, err] = ['', ''];
  child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (err += chunk.toString()));
  const closed = once(child, 'close');
  if (stdin !== undefined) {
    const { pid = 0 } = child;
    await Promise.race([closed, until('the command reads', () => isReading(pid), READS_WITHIN_MS)]);
    child.stdin?.end(stdin);
  }
  const [code] = (await closed) as [number];
  return { code, out, err };
}

/** A command that is started from its sources on a busy machine takes its time. */
const READS_WITHIN_MS = 60_000;
/** `O_NONBLOCK` of Linux' asm-generic/fcntl.h: Node.js sets it when it opens its standard input. */
const NON_BLOCKING = 0o4000;

function isReading(pid: number): boolean {
  try {
    const flags = /^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/fdinfo/0`, 'utf8'))?.[1] ?? '0';
    return (Number.parseInt(flags, 8) & NON_BLOCKING) !== 0;
  } catch {
    return false;
  }
}
