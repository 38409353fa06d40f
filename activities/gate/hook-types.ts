export const HOOK_EVENTS = [
  'SessionStart',
  'UserPromptSubmit',
  'PreToolUse',
  'PostToolUse',
  'PostToolUseFailure',
  'PermissionDenied',
  'StopGate',
  'Stop',
  'StopFailure',
  'StopCancelled',
  'SubagentStart',
  'SubagentStop',
  'PreCompact',
  'PostCompact',
  'SessionEnd',
] as const;
export type HookEvent = (typeof HOOK_EVENTS)[number];

/** Events whose hooks are asked; all others are reports. */
export const ASKING_EVENTS = ['UserPromptSubmit', 'PreToolUse', 'StopGate'] as const satisfies readonly HookEvent[];
export type AskingEvent = (typeof ASKING_EVENTS)[number];

/** Events that are about one call, so that a hook can be for some tools only. */
export const TOOL_EVENTS = [
  'PreToolUse',
  'PostToolUse',
  'PostToolUseFailure',
  'PermissionDenied',
] as const satisfies readonly HookEvent[];

/** What a hook is told: plain JSON, on the standard input of a command. */
export interface HookFacts {
  readonly session: string;
  readonly turn: string | null;
  /** Absolute path; a hook does not run in there. */
  readonly workspace: string;
  readonly tool?: string;
  readonly [more: string]: unknown;
}
export type HookInput = HookFacts & { readonly event: HookEvent };

/** Nothing: no objection. `rewrite` (PreToolUse only): all arguments of the call, as they shall be. */
export type HookAnswer = { readonly deny: string } | { readonly rewrite: Readonly<Record<string, unknown>> };

type MaybeAnswer = HookAnswer | null | undefined | void;
export type HookFunction = (input: HookInput, signal: AbortSignal) => MaybeAnswer | Promise<MaybeAnswer>;

export interface Hook {
  readonly event: HookEvent;
  /** Name of a tool, `*` for any characters; for events about a call. */
  readonly tool?: string;
  readonly run:
    | HookFunction
    /** Looked up in PATH, or relative to the config's folder, where it also runs. */
    | { readonly command: string; readonly args?: readonly string[]; readonly timeLimitMs?: number };
}

/** A hook that could not say anything; the call went on without it. Names and fixed texts, never content. */
export interface HookFailure {
  readonly hook: string;
  readonly why: string;
}
