import { POLICY } from './policy.ts';

/** Who took the decision that ended something. */
export type Decider = 'model' | 'runtime' | 'user' | 'scheduler';

/**
 * Every way a turn can end, and who may have decided it.
 * The table is the type: a detail that is not here cannot be written down.
 */
export const END_DETAILS = {
  COMPLETED: { final_answer: 'model', refused: 'model', todo_open: 'runtime' },
  BLOCKED: {
    awaiting_input: 'model',
    external_dependency: 'model',
    awaiting_approval: 'runtime',
    no_progress: 'runtime',
  },
  MAX_TOKENS: { output_limit: 'runtime', context_limit: 'runtime' },
  ABORTED: {
    user_cancel: 'user',
    permission_rejected: 'user',
    permission_cancelled: 'user',
    max_steps: 'runtime',
    budget: 'runtime',
    deadline: 'runtime',
    hook_stop: 'runtime',
    scheduler_cancel: 'scheduler',
    parent_cancelled: 'inherited',
  },
  ERROR: {
    auth: 'runtime',
    model: 'runtime',
    provider_unavailable: 'runtime',
    invalid_request: 'runtime',
    context_unusable: 'runtime',
    storage: 'runtime',
    tool_infrastructure: 'runtime',
    internal: 'runtime',
  },
  INTERRUPTED: {
    terminated: 'user',
    timed_out: 'runtime',
    unknown_outcome: 'runtime',
    workspace_lost: 'runtime',
    lost: 'runtime',
  },
} as const;

export type EndReason = keyof typeof END_DETAILS;

type DetailsOf<R extends EndReason> = keyof (typeof END_DETAILS)[R] & string;

type DeciderOf<R extends EndReason, D extends DetailsOf<R>> = (typeof END_DETAILS)[R][D] extends infer W
  ? W extends 'inherited'
    ? Decider
    : W
  : never;

/** Where in the loop the turn stood when the end was decided. */
export type EndPhase = 'sampling' | 'gate' | 'tools' | 'waiting' | 'resting' | 'compacting' | 'ending' | 'cleanup';

/** What made the decider decide; a limit names itself and how much of it was used. */
export type Signal =
  | { readonly name: 'model_stop' | 'model_refusal' | 'model_report' }
  | { readonly name: 'limit'; readonly limit: LimitName; readonly allowed: number; readonly used: number }
  /** `items`: the todos themselves; the workflow knows only how many. */
  | { readonly name: 'open_todos'; readonly count: number; readonly items?: readonly string[] }
  | { readonly name: 'retries_spent'; readonly cause: string; readonly used: number }
  | { readonly name: 'provider_answer'; readonly cause: string; readonly status?: number }
  | { readonly name: 'cancel_request'; readonly id?: string }
  | { readonly name: 'approval'; readonly id: string }
  | { readonly name: 'hook'; readonly id: string }
  | { readonly name: 'engine'; readonly event: string }
  | { readonly name: 'fault'; readonly type: string };

export type LimitName =
  | 'steps'
  | 'tokens'
  | 'usd'
  | 'running_ms'
  | 'not_after'
  | 'output_tokens'
  | 'context_tokens'
  | 'identical_steps'
  | 'approval_ms';

type EndOf<R extends EndReason> = {
  [D in DetailsOf<R>]: {
    readonly reason: R;
    readonly detail: D;
    readonly decidedBy: DeciderOf<R, D>;
    readonly signal: Signal;
    readonly phase: EndPhase;
  } & (D extends 'provider_unavailable' ? { readonly resumeAtMs: number } : unknown);
}[DetailsOf<R>];

/** Exactly one of these closes a turn. An end without a decider and a signal does not type-check. */
export type End = { [R in EndReason]: EndOf<R> }[EndReason];

export type EndDetail = End['detail'];

/** The status the engine shows for a turn that ended this way (a terminate after the end row excepted). */
export function engineStatusOf(reason: EndReason): 'completed' | 'canceled' | 'failed' {
  switch (reason) {
    case 'COMPLETED':
    case 'BLOCKED':
    case 'MAX_TOKENS':
      return 'completed';
    case 'ABORTED':
      return 'canceled';
    case 'ERROR':
    case 'INTERRUPTED':
      return 'failed';
  }
}

/** What was done about a job before one of its turns ended. */
export interface JobSoFar {
  /** Turns that it went on with by itself. */
  readonly continuations: number;
  /** Somebody wanted this turn cancelled. */
  readonly cancelAsked: boolean;
}

/** What a machine did is answered with one more turn by itself, a few times a job, unless somebody wanted it to end. */
export function continuesByItself(end: Pick<End, 'reason' | 'detail'>, before: JobSoFar): boolean {
  if (end.reason !== 'INTERRUPTED' || end.detail === 'terminated' || end.detail === 'unknown_outcome') return false;
  return !before.cancelAsked && before.continuations < POLICY.recovery.continuationsPerJob;
}
