import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { type ProcessIdentity, startedAt } from './identity.ts';

const SUPERVISOR = fileURLToPath(new URL('./supervisor.js', import.meta.url));

export interface Command {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** The whole environment of the command; nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  readonly uid?: number;
  readonly gid?: number;
  readonly stopSignal: 'SIGTERM' | 'SIGINT' | 'SIGQUIT' | 'SIGKILL';
  /** From the stop signal to SIGKILL, ms. */
  readonly graceMs: number;
  /** End what the command left behind in its group when it exits. */
  readonly reapGroup: boolean;
  /** `pipe`: the caller reads; a number: an open file descriptor for both streams. */
  readonly output: 'pipe' | number;
  /** Written to the standard input, which is then closed, or who writes to it; without it, there is none. */
  readonly input?: string | ((stream: Writable) => void);
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Supervised {
  /** The command's own process, which leads its group. */
  readonly identity: ProcessIdentity;
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
  readonly exited: Promise<Exit>;
  /** Asks the supervisor to end the group; the same happens when this process dies. */
  stop(): void;
}

/** Starts a command under the supervisor. Rejects if it can't be started. */
export async function supervise(command: Command): Promise<Supervised> {
  const { output, input, ...spec } = command;
  const out = output === 'pipe' ? 'pipe' : output;
  const supervisor = spawn(process.execPath, [SUPERVISOR, JSON.stringify({ ...spec, hasInput: input !== undefined })], {
    detached: true,
    stdio: ['pipe', out, out, 'pipe', ...(input === undefined ? [] : (['pipe'] as const))],
    env: { PATH: process.env.PATH ?? '' },
  });
  supervisor.stdin?.on('error', () => {});
  const stream = supervisor.stdio[4] as Writable;
  if (typeof input === 'string') feed(stream, input);
  else input?.(stream);
  const facts = createInterface({ input: supervisor.stdio[3] as Readable })[Symbol.asyncIterator]();
  const first = await nextFact(facts);
  if (first === null || !('pid' in first)) {
    throw new Error(
      `${command.command} could not be started: ${first && 'error' in first ? first.error : 'no answer'}`,
    );
  }
  const exited = nextFact(facts).then(
    (fact): Exit => (fact && 'code' in fact ? fact : { code: null, signal: 'SIGKILL' }),
  );
  return {
    identity: { pid: first.pid, started: startedAt(first.pid) ?? '' },
    stdout: supervisor.stdout,
    stderr: supervisor.stderr,
    exited,
    stop: () => (supervisor.stdin as Writable).end(),
  };
}

/** A command need not read it, nor live to its end. */
function feed(stream: Writable, input: string): void {
  stream.on('error', () => {});
  stream.end(input);
}

type Fact = { readonly pid: number } | { readonly error: string } | Exit;

async function nextFact(lines: AsyncIterator<string>): Promise<Fact | null> {
  const line = await lines.next();
  return line.done ? null : (JSON.parse(line.value) as Fact);
}
