import { basename } from 'node:path';
import { POLICY } from '../../workflows/core/policy.ts';
import { runHookCommand } from './hook-command.ts';
import { ASKING_EVENTS, type AskingEvent, type Hook, type HookEvent, type HookInput } from './hook-types.ts';

/** A command that ends with this code objects; the reason is its standard error. */
const OBJECT_EXIT_CODE = 2;

export interface NamedHook {
  readonly hook: Hook;
  readonly name: string;
  /** Where a command runs. */
  readonly cwd: string;
}

/** What one hook came back with, before anybody looks whether that is an answer to its event. */
export type HookSaid =
  | { readonly kind: 'answered'; readonly value: unknown }
  | { readonly kind: 'objected'; readonly reason: string }
  | FailedHook;

/** `why` is a fixed text, never content. */
export interface FailedHook {
  readonly kind: 'failed';
  readonly why: string;
}

export function nameOf({ event, run }: Hook, index: number): string {
  const what = typeof run === 'function' ? run.name : basename(run.command);
  return `${event} ${index + 1}${what === '' || what === 'run' ? '' : ` (${what})`}`;
}

export function isAsking(event: HookEvent): event is AskingEvent {
  return ASKING_EVENTS.some((asking) => asking === event);
}

/** Runs one hook, in bounded time, and reads what it said; never throws, whatever it gave back. */
export async function runHook<A>(
  { hook, cwd }: NamedHook,
  input: HookInput,
  signal: AbortSignal,
  read: (said: HookSaid) => A,
): Promise<A | FailedHook> {
  try {
    return read(await run(hook, cwd, input, signal));
  } catch (error) {
    return { kind: 'failed', why: `threw ${error instanceof Error ? error.constructor.name : typeof error}` };
  }
}

async function run(hook: Hook, cwd: string, input: HookInput, signal: AbortSignal): Promise<HookSaid> {
  const { limitMs, stopGateLimitMs } = POLICY.hooks;
  const timeLimitMs = input.event === 'StopGate' ? stopGateLimitMs : limitMs;
  const json = JSON.stringify(input);
  if (typeof hook.run === 'function') return await byFunction(hook.run, JSON.parse(json), timeLimitMs, signal);
  const { command, args = [], timeLimitMs: own = timeLimitMs } = hook.run;
  const ran = await runHookCommand({ command, args, cwd, input: `${json}\n`, timeLimitMs: own }, signal);
  return ran.kind === 'failed' ? ran : byExit(ran, input.event);
}

/** Each function gets its own copy, so that none can change what the next one sees. */
async function byFunction(
  run: Extract<Hook['run'], (...args: never) => unknown>,
  input: HookInput,
  timeLimitMs: number,
  signal: AbortSignal,
): Promise<HookSaid> {
  const late = new AbortController();
  const over = AbortSignal.any([signal, late.signal]);
  const timer = setTimeout(() => late.abort(), timeLimitMs);
  if (signal.aborted) return { kind: 'failed', why: 'cut by a cancel' };
  const cut = new Promise<never>((_, reject) => over.addEventListener('abort', () => reject(over.reason)));
  try {
    return { kind: 'answered', value: await Promise.race([cut, run(input, over)]) };
  } catch (error) {
    if (signal.aborted) return { kind: 'failed', why: 'cut by a cancel' };
    if (late.signal.aborted) return { kind: 'failed', why: `took longer than ${timeLimitMs} ms` };
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

function byExit({ code, stdout, stderr }: Exited, event: HookEvent): HookSaid {
  if (code === OBJECT_EXIT_CODE && isAsking(event)) return { kind: 'objected', reason: stderr.trim() };
  if (code !== 0) return { kind: 'failed', why: `exit code ${code}` };
  if (!isAsking(event) || stdout.trim() === '') return { kind: 'answered', value: null };
  try {
    return { kind: 'answered', value: JSON.parse(stdout) };
  } catch {
    return { kind: 'failed', why: 'its output is not JSON' };
  }
}

interface Exited {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}
