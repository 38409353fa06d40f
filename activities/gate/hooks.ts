import { basename } from 'node:path';
import { z } from 'zod';
import { POLICY } from '../../workflows/core/policy.ts';
import { canonicalJson } from '../store/hash.ts';
import { runHookCommand } from './hook-command.ts';
import {
  ASKING_EVENTS,
  type AskingEvent,
  type Hook,
  type HookEvent,
  type HookFacts,
  type HookFailure,
  type HookInput,
} from './hook-types.ts';
import { fits } from './patterns.ts';

/** A command that ends with this code denies; the reason is its standard error. */
const DENY_EXIT_CODE = 2;

/** What the hooks of one event said together. */
export interface Asked {
  readonly deny: string | null;
  /** The last rewrite, as canonical JSON; null where there was none, or a deny. */
  readonly rewrite: string | null;
  readonly failures: readonly HookFailure[];
}

export interface Hooks {
  has(event: HookEvent, tool?: string): boolean;
  /**
   * Asks one after the other; each sees the same input, the first deny ends it. One that fails is passed over
   * and reported. Throws only the reason of an aborted `signal`.
   */
  ask(event: AskingEvent, facts: HookFacts, signal: AbortSignal): Promise<Asked>;
  /** Tells all of them at once; never throws. What they answer is not looked at. */
  report(event: HookEvent, facts: HookFacts, signal?: AbortSignal): Promise<readonly HookFailure[]>;
}

/** `cwd`: where commands run, the folder of the config. */
export function createHooks(hooks: readonly Hook[], cwd: string): Hooks {
  const named = hooks.map((hook, index) => ({ hook, name: nameOf(hook, index), cwd }));
  const of = (event: HookEvent, tool: string | undefined) =>
    named.filter(({ hook }) => hook.event === event && (hook.tool === undefined || fits(hook.tool, tool ?? '')));
  return {
    has: (event, tool) => of(event, tool).length > 0,
    async ask(event, facts, signal) {
      const failures: HookFailure[] = [];
      let rewrite: Asked['rewrite'] = null;
      for (const hook of of(event, facts.tool)) {
        const said = await runHook(hook, { ...facts, event }, signal);
        // A cancel must not look like a hook that failed open.
        signal.throwIfAborted();
        switch (said.kind) {
          case 'deny':
            return { deny: said.reason, rewrite: null, failures };
          case 'rewrite':
            if (event === 'PreToolUse') rewrite = said.json;
            else failures.push({ hook: hook.name, why: 'there is nothing to rewrite' });
            break;
          case 'failed':
            failures.push({ hook: hook.name, why: said.why });
            break;
          case 'nothing':
        }
      }
      return { deny: null, rewrite, failures };
    },
    async report(event, facts, signal = new AbortController().signal) {
      const told = await Promise.all(
        of(event, facts.tool).map(async (hook) => ({
          hook: hook.name,
          said: await runHook(hook, { ...facts, event }, signal),
        })),
      );
      return told.flatMap(({ hook, said }) => (said.kind === 'failed' ? [{ hook, why: said.why }] : []));
    },
  };
}

interface Named {
  readonly hook: Hook;
  readonly name: string;
  readonly cwd: string;
}

type Said =
  | { readonly kind: 'deny'; readonly reason: string }
  | { readonly kind: 'rewrite'; readonly json: string }
  | { readonly kind: 'nothing' }
  | { readonly kind: 'failed'; readonly why: string };

async function runHook({ hook, cwd }: Named, input: HookInput, signal: AbortSignal): Promise<Said> {
  const { limitMs, stopGateLimitMs } = POLICY.hooks;
  const timeLimitMs = input.event === 'StopGate' ? stopGateLimitMs : limitMs;
  try {
    const json = JSON.stringify(input);
    if (typeof hook.run === 'function') return await byFunction(hook.run, JSON.parse(json), timeLimitMs, signal);
    const { command, args = [], timeLimitMs: own = timeLimitMs } = hook.run;
    const ran = await runHookCommand({ command, args, cwd, input: `${json}\n`, timeLimitMs: own }, signal);
    if (ran.kind === 'failed') return ran;
    return byExit(ran, input.event);
  } catch (error) {
    return { kind: 'failed', why: `threw ${error instanceof Error ? error.constructor.name : typeof error}` };
  }
}

/** Each function gets its own copy, so that none can change what the next one sees. */
async function byFunction(
  run: Extract<Hook['run'], (...args: never) => unknown>,
  input: HookInput,
  timeLimitMs: number,
  signal: AbortSignal,
): Promise<Said> {
  const late = new AbortController();
  const over = AbortSignal.any([signal, late.signal]);
  const timer = setTimeout(() => late.abort(), timeLimitMs);
  if (signal.aborted) return { kind: 'failed', why: 'cut by a cancel' };
  const cut = new Promise<never>((_, reject) => over.addEventListener('abort', () => reject(over.reason)));
  try {
    return answerOf(await Promise.race([cut, run(input, over)]), input.event);
  } catch (error) {
    if (signal.aborted) return { kind: 'failed', why: 'cut by a cancel' };
    if (late.signal.aborted) return { kind: 'failed', why: `took longer than ${timeLimitMs} ms` };
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

function byExit({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }, event: HookEvent): Said {
  if (code === DENY_EXIT_CODE && isAsking(event)) return { kind: 'deny', reason: stderr.trim() };
  if (code !== 0) return { kind: 'failed', why: `exit code ${code}` };
  if (!isAsking(event) || stdout.trim() === '') return { kind: 'nothing' };
  try {
    return answerOf(JSON.parse(stdout), event);
  } catch {
    return { kind: 'failed', why: 'its output is not JSON' };
  }
}

/** Whatever comes with it, a deny is one. */
const Deny = z.object({ deny: z.string() });
const Rewrite = z.strictObject({ rewrite: z.looseObject({}) });
const Nothing = z.union([z.undefined(), z.null(), z.strictObject({})]);

function answerOf(value: unknown, event: HookEvent): Said {
  if (!isAsking(event) || Nothing.safeParse(value).success) return { kind: 'nothing' };
  const deny = Deny.safeParse(value);
  if (deny.success) return { kind: 'deny', reason: deny.data.deny };
  const rewrite = Rewrite.safeParse(value);
  if (rewrite.success) return { kind: 'rewrite', json: canonicalJson((value as { rewrite: unknown }).rewrite) };
  return { kind: 'failed', why: 'its answer is neither deny nor rewrite' };
}

function isAsking(event: HookEvent): event is AskingEvent {
  return ASKING_EVENTS.some((asking) => asking === event);
}

function nameOf({ event, run }: Hook, index: number): string {
  const what = typeof run === 'function' ? run.name : basename(run.command);
  return `${event} ${index + 1}${what === '' || what === 'run' ? '' : ` (${what})`}`;
}
