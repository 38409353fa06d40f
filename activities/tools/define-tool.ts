import type { ZodType } from 'zod';
import type { AgentMode } from '../../workflows/core/agents.ts';
import type { Effect, LockMode, OnUnknown, Runs } from '../../workflows/core/tools.ts';
import type { Command, Supervised } from '../process/supervise.ts';
import type { MaskStream } from '../secrets/mask.ts';

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
  /**
   * False once the lease can't be trusted any more. `signal` may tell so late, such as after the process was
   * frozen: look here right before something leaves that can't be taken back.
   */
  readonly mayAct?: () => boolean;
  /** Kept output of this tenant by the hash that its result names, or null. */
  readonly readBlob?: (hash: string) => Promise<Buffer | null>;
  /** How the goal of the session stands, for the model; null where it has none that is open. */
  readonly goal?: () => Promise<string | null>;
  /** Masks secrets in output that comes in pieces; what `run` returns is masked anyway. */
  readonly maskStream?: () => MaskStream<Buffer>;
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

/** What a call is about, for permission rules and for who is asked: they compare it as what it is. */
export interface Subject {
  /** `tree`: a path, and the call reads everything below it. */
  readonly kind: 'path' | 'tree' | 'command' | 'url' | 'text';
  readonly text: string;
}

/** Arguments by a JSON Schema of somebody else's, for tools that are not written here. */
export interface JsonSchemaInput<Args> {
  /** An object schema, as the model is to see it. */
  readonly jsonSchema: Readonly<Record<string, unknown>>;
  check(value: object): Checked<Args>;
}

export type Checked<Args> =
  | { readonly ok: true; readonly args: Args }
  | { readonly ok: false; readonly faults: readonly Fault[] };

export interface Fault {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** What a waiting call waits for. A `report` does not wait: the turn ends BLOCKED at once, and what it says stays open. */
export type WaitPlan =
  | { readonly kind: 'question'; readonly text: string; readonly forMs: number }
  | { readonly kind: 'event'; readonly text: string; readonly forMs: number }
  | { readonly kind: 'time'; readonly untilMs: number }
  /** The end of a sub-agent that this call starts; in the background it waits for nothing. */
  | {
      readonly kind: 'agent';
      readonly agent: string;
      readonly prompt: string;
      readonly mode: AgentMode;
      readonly maxTokens: number | null;
      readonly maxMicroUsd: number | null;
    }
  /** Ends of sub-agents in the background; `ids` null: of all whose end has not been told. */
  | {
      readonly kind: 'agents';
      readonly ids: readonly string[] | null;
      readonly for: 'any' | 'all';
      readonly forMs: number | null;
    }
  | { readonly kind: 'report'; readonly on: 'question' | 'event'; readonly text: string };

/** How a call is taken back that a cancel cut in the middle. */
export interface Undo<Args> {
  /**
   * Takes it back: `details` and `idempotencyKey` are the call's own. What it throws means that it could not.
   * It may be called for something that did not happen, where `onUnknown` says `run`.
   */
  run(args: Args, context: ToolContext): Promise<void>;
  /** `once` if left out: one that is lost in the middle is not begun again, and nobody knows. */
  readonly effect?: 'once' | 'idempotent';
  /** `leave` if left out: where nobody knows whether the call took effect, it stays as it is. */
  readonly onUnknown?: 'leave' | 'run';
}

/** A resource that a call touches, by its name, and how. */
export interface ResourceLock {
  readonly resource: string;
  readonly mode: LockMode;
}

export interface Tool<Args = unknown> {
  readonly name: string;
  readonly description: string;
  readonly input: ZodType<Args> | JsonSchemaInput<Args>;
  readonly runs: Runs;
  readonly effect: Effect;
  readonly onUnknown: OnUnknown;
  /** How long after the lost attempt's death, or its lease, an `absent` answer may be believed, ms. */
  readonly settleAfterMs: number;
  /** Longest run of one call, ms. */
  readonly timeLimitMs: number;
  /**
   * Names of the resources a call touches: one resource, one name, however the arguments spell it (a path relative
   * to `workspace`, the session's folder). Only their keyed hashes leave the store.
   */
  locks(args: Args, workspace: string): readonly ResourceLock[];
  /** The principal argument. Without it no rule can look into a call, and those that try to `allow` do not fit. */
  subject?(args: Args): Subject;
  /** Set where a call changes nothing but the file that its subject names, inside the workspace. */
  readonly within?: 'workspace';
  /** It is made to be called again and again until something has happened: repeating it is no sign of a loop so soon. */
  readonly polling?: boolean;
  /**
   * For readers that answer within moments, by nature (a file, a row): called without a round trip through the
   * engine. One that takes longer after all is called again the usual way.
   */
  readonly quick?: boolean;
  /** Variables whose values it uses as secrets: masked in everything that is stored. */
  readonly secretEnv?: readonly string[];
  /** For `runs: 'wait'` and `'child'`: what the call waits for, as a timer and a condition that hold no worker. */
  wait?(args: Args, nowMs: number): WaitPlan;
  /** Runs before the effect is marked started; what it returns is kept with the mark. */
  prepare?(args: Args, context: ToolContext): Promise<unknown>;
  run(args: Args, context: ToolContext): Promise<ToolResult>;
  /** Asks the remote side whether an attempt whose outcome is not known has happened. */
  reconcile?(args: Args, context: ToolContext): Promise<Reconciled>;
  /** Takes a call back when its turn is cancelled in the middle of it. */
  readonly undo?: Undo<Args>;
}

export interface ToolDefinition<Args> {
  readonly name: string;
  readonly description: string;
  readonly input: Tool<Args>['input'];
  /** What a call does to the world; `once` unless said otherwise. */
  readonly effect?: Effect;
  readonly runs?: Runs;
  readonly onUnknown?: OnUnknown;
  readonly settleAfterMs?: number;
  readonly timeLimitMs?: number;
  readonly locks?: Tool<Args>['locks'];
  readonly subject?: NonNullable<Tool<Args>['subject']>;
  readonly within?: 'workspace';
  readonly polling?: boolean;
  readonly quick?: boolean;
  readonly secretEnv?: readonly string[];
  readonly wait?: NonNullable<Tool<Args>['wait']>;
  readonly prepare?: NonNullable<Tool<Args>['prepare']>;
  readonly run: Tool<Args>['run'];
  readonly reconcile?: NonNullable<Tool<Args>['reconcile']>;
  readonly undo?: Undo<Args>;
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

export interface WaitDefinition<Args> {
  readonly name: string;
  readonly description: string;
  readonly input: Tool<Args>['input'];
  readonly wait: NonNullable<Tool<Args>['wait']>;
  /** `child`: it starts a sub-agent and waits for its end. */
  readonly runs?: 'wait' | 'child';
}

/** Defines a tool that waits: for a person, for something outside, or for a time. */
export function defineWait<Args>(definition: WaitDefinition<Args>): Tool<Args> {
  return defineTool<Args>({
    runs: 'wait',
    ...definition,
    effect: 'none',
    run: () => Promise.resolve({ isError: true, text: 'This call waits; it does not run.', note: 'not_run' }),
  });
}
