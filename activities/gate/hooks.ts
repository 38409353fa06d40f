import { permitAnswerOf, stopAnswerOf } from './hook-answers.ts';
import type { Hook, HookEvent, HookFacts, HookFailure, PermittingEvent } from './hook-types.ts';
import { fits } from './patterns.ts';
import { isAsking, nameOf, runHook } from './run-hook.ts';

/** What the hooks of one event said together. */
export interface Asked {
  readonly deny: string | null;
  /** The last rewrite, as canonical JSON; null where there was none, or a deny. */
  readonly rewrite: string | null;
  readonly failures: readonly HookFailure[];
}

/** What the hooks said of an end: the first block, but a stop wins over all. */
export type AskedStop = { readonly failures: readonly HookFailure[] } & (
  | { readonly kind: 'pass' }
  | { readonly kind: 'block'; readonly hook: string; readonly reason: string }
  | { readonly kind: 'stop'; readonly hook: string; readonly why: string | null }
);

export interface Hooks {
  has(event: HookEvent, tool?: string): boolean;
  /** Whether any hook is there that is told, not asked. */
  readonly hasReports: boolean;
  /**
   * Asks one after the other; each sees the same input, the first deny ends it. One that fails is passed over
   * and reported. Throws only the reason of an aborted `signal`.
   */
  ask(event: PermittingEvent, facts: HookFacts, signal: AbortSignal): Promise<Asked>;
  /** The same for the stop gate; a block does not end it, since a later hook may want to stop. */
  askStop(facts: HookFacts, signal: AbortSignal): Promise<AskedStop>;
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
    hasReports: hooks.some(({ event }) => !isAsking(event)),
    async ask(event, facts, signal) {
      const failures: HookFailure[] = [];
      let rewrite: Asked['rewrite'] = null;
      for (const hook of of(event, facts.tool)) {
        const answer = await runHook(hook, { ...facts, event }, signal, (said) => permitAnswerOf(said, event));
        // A cancel must not look like a hook that failed open.
        signal.throwIfAborted();
        if (answer.kind === 'deny') return { deny: answer.reason, rewrite: null, failures };
        if (answer.kind === 'rewrite') rewrite = answer.json;
        if (answer.kind === 'failed') failures.push({ hook: hook.name, why: answer.why });
      }
      return { deny: null, rewrite, failures };
    },
    async askStop(facts, signal) {
      const failures: HookFailure[] = [];
      let block: { readonly hook: string; readonly reason: string } | null = null;
      for (const hook of of('StopGate', undefined)) {
        const answer = await runHook(hook, { ...facts, event: 'StopGate' }, signal, stopAnswerOf);
        signal.throwIfAborted();
        if (answer.kind === 'stop') return { kind: 'stop', hook: hook.name, why: answer.why, failures };
        if (answer.kind === 'block') block ??= { hook: hook.name, reason: answer.reason };
        if (answer.kind === 'failed') failures.push({ hook: hook.name, why: answer.why });
      }
      return block ? { kind: 'block', ...block, failures } : { kind: 'pass', failures };
    },
    async report(event, facts, signal = new AbortController().signal) {
      const told = await Promise.all(
        of(event, facts.tool).map(async (hook) => ({
          hook: hook.name,
          said: await runHook(hook, { ...facts, event }, signal, (answer) => answer),
        })),
      );
      return told.flatMap(({ hook, said }) => (said.kind === 'failed' ? [{ hook, why: said.why }] : []));
    },
  };
}
