import type { ZodType } from 'zod';
import type { Effect, LockKey, OnUnknown, Runs } from '../../workflows/core/tools.ts';
import type { Command, Supervised } from '../process/supervise.ts';

/** What a tool may use while it runs. */
export interface ToolContext {
  /** Real path of the session's workspace. */
  readonly workspace: string;
  /** Aborted by a cancel, by the time limit and before the lease ends. */
  readonly signal: AbortSignal;
  /** The same for every attempt of this call: send it to the remote side. */
  readonly idempotencyKey: string;
  /** What `prepare` noted before the call was started. */
  readonly details: unknown;
  /** Starts a process whose group the ledger records, so that it never outlives its attempt. */
  spawn(command: Command): Promise<Supervised>;
  /** Most characters the result may have; the rest goes to `output`. */
  readonly resultChars: number;
}

export interface ToolResult {
  readonly isError: boolean;
  /** What the model is told: at most `resultChars` characters. */
  readonly text: string;
  /** The whole output where `text` is only a part of it. */
  readonly output?: Buffer;
  /** Error class, exit code or HTTP status, at most 200 characters, for the event table. */
  readonly note?: string;
  /** Set where the abort signal stopped the call: whether it is sure that nothing had happened yet. */
  readonly aborted?: 'without_effect' | 'in_the_middle';
}

/** What asking the remote side brought. `done` says what to tell the model. */
export type Reconciled =
  | { readonly kind: 'done'; readonly result: ToolResult }
  | { readonly kind: 'absent' }
  | { readonly kind: 'unknown' };

export interface Tool<Args = unknown> {
  readonly name: string;
  readonly description: string;
  readonly input: ZodType<Args>;
  readonly runs: Runs;
  readonly effect: Effect;
  readonly onUnknown: OnUnknown;
  /** How long after the lease an `absent` answer may be believed, ms. */
  readonly settleAfterMs: number;
  /** Longest run of one call, ms. */
  readonly timeLimitMs: number;
  /** Names of the resources a call touches, such as a path; only their keyed hashes leave the store. */
  locks(args: Args): readonly { readonly resource: string; readonly mode: LockKey['mode'] }[];
  /** Runs before the effect is marked started; what it returns is kept with the mark. */
  prepare?(args: Args, context: ToolContext): Promise<unknown>;
  run(args: Args, context: ToolContext): Promise<ToolResult>;
  /** Asks the remote side whether an attempt whose outcome is not known has happened. */
  reconcile?(args: Args, context: ToolContext): Promise<Reconciled>;
}

export interface ToolDefinition<Args> {
  readonly name: string;
  readonly description: string;
  readonly input: ZodType<Args>;
  /** What a call does to the world; `once` unless said otherwise. */
  readonly effect?: Effect;
  readonly runs?: Runs;
  readonly onUnknown?: OnUnknown;
  readonly settleAfterMs?: number;
  readonly timeLimitMs?: number;
  readonly locks?: Tool<Args>['locks'];
  readonly prepare?: NonNullable<Tool<Args>['prepare']>;
  readonly run: Tool<Args>['run'];
  readonly reconcile?: NonNullable<Tool<Args>['reconcile']>;
}

/**
 * Defines a tool. A tool that changes something says so in `effect`; without it, `once` is assumed: never
 * sent twice. A failure that `run` is sure of is returned with `isError`. What it throws is the result of
 * this one call too, but for a `keyed` or `once` tool a throw means: whether it happened is not known.
 */
export function defineTool<Args>(definition: ToolDefinition<Args>): Tool<Args> {
  return {
    runs: 'activity',
    effect: 'once',
    onUnknown: 'ask',
    settleAfterMs: 0,
    timeLimitMs: 120_000,
    locks: () => [],
    ...definition,
  };
}
