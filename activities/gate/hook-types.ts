import type { EndReason } from '../../workflows/core/ends.ts';

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
/** Asked whether something may be done; the stop gate is asked whether something may end. */
export type PermittingEvent = Exclude<AskingEvent, 'StopGate'>;

/** What became of a turn, as hooks are told it: exactly one of them a turn. */
export const STOP_EVENTS = {
  COMPLETED: 'Stop',
  BLOCKED: 'Stop',
  MAX_TOKENS: 'StopFailure',
  ERROR: 'StopFailure',
  INTERRUPTED: 'StopFailure',
  ABORTED: 'StopCancelled',
} as const satisfies Readonly<Record<EndReason, HookEvent>>;

/** Events that are about one call, so that a hook can be for some tools only. */
export const TOOL_EVENTS = [
  'PreToolUse',
  'PostToolUse',
  'PostToolUseFailure',
  'PermissionDenied',
] as const satisfies readonly HookEvent[];

/** What a hook is told: plain JSON, on the standard input of a command. `docs/hooks.md` has what each event adds. */
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
export type HookAnswer =
  | { readonly deny: string }
  | { readonly rewrite: Readonly<Record<string, unknown>> }
  | StopGateAnswer;

/** StopGate only: the turn goes on, and the model is told the reason; or it ends now, ABORTED. */
export type StopGateAnswer =
  | { readonly decision: 'block'; readonly reason: string }
  | { readonly continue: false; readonly stopReason?: string };

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
