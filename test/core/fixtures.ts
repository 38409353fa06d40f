import type { End } from '../../workflows/core/ends.ts';
import { NO_USAGE, type SampleOutcome, type Usage } from '../../workflows/core/sample-outcome.ts';
import { DEFAULT_LIMITS, type Limits } from '../../workflows/core/policy.ts';
import { type ContextTries, FRESH_CONTEXT } from '../../workflows/core/turn-counters.ts';
import { PLAIN_RULES, type TurnRules } from '../../workflows/core/turn-rules.ts';
import type { CallRef } from '../../workflows/core/tools.ts';
import {
  type AskedEnd,
  type BatchCall,
  FRESH_TRIES,
  openTurn,
  type Phase,
  type Tries,
  type TurnState,
} from '../../workflows/core/turn-state.ts';

/** When every turn of these tests opens, ms since the epoch. */
export const T0 = 1_000_000;

export const USAGE: Usage = { ...NO_USAGE, inputTokens: 100, cachedTokens: 40, outputTokens: 10, reasoningTokens: 3 };

type Change = Partial<Omit<TurnState, 'limits' | 'tries' | 'context' | 'rules'>> & {
  readonly rules?: Partial<TurnRules>;
  readonly context?: Partial<ContextTries>;
  readonly limits?: Partial<Limits>;
  readonly tries?: Partial<Tries>;
};

/** A turn that has just opened, changed where the test says so; frozen, so that nothing may write to it. */
export function turn({ rules, limits, tries, context, ...change }: Change = {}): TurnState {
  const opened = openTurn({
    head: 'h0',
    inputs: ['in_1'],
    rules: { ...PLAIN_RULES, ...rules },
    limits: { ...DEFAULT_LIMITS, ...limits },
    atMs: T0,
    carried: null,
  });
  return frozen({
    ...opened,
    tries: { ...FRESH_TRIES, ...tries },
    context: { ...FRESH_CONTEXT, ...context },
    ...change,
  });
}

export function frozen<T>(value: T): T {
  if (value !== null && typeof value === 'object' && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) frozen(inner);
  }
  return value;
}

export function ref(ordinal: number, change: Partial<CallRef> = {}): CallRef {
  const plain = {
    tool: 'read_file',
    runs: 'activity',
    effect: 'none',
    argsHash: 'a',
    locks: [],
    verdict: 'run',
  } as const;
  return { ordinal, ...plain, ...change };
}

export function batch(
  ...states: readonly Exclude<BatchCall['state'], 'asking' | 'waiting' | 'in_doubt'>[]
): Phase & { kind: 'batch' } {
  return { kind: 'batch', calls: states.map((state, ordinal) => ({ ref: ref(ordinal), state })), fuse: null };
}

type Reply = SampleOutcome & { readonly kind: 'reply' };

export function reply(change: Partial<Reply> = {}): Reply {
  return { kind: 'reply', head: 'h1', finish: 'stop', empty: false, calls: [], usage: USAGE, ...change };
}

/** What `after` has that `before` had not, field by field: the exact effect of one event. */
export function changed(before: TurnState, after: TurnState): Partial<TurnState> {
  const entries = Object.entries(after).filter(
    ([key, value]) => JSON.stringify(value) !== JSON.stringify(before[key as keyof TurnState]),
  );
  return Object.fromEntries(entries);
}

export const COMPLETED: End = {
  reason: 'COMPLETED',
  detail: 'final_answer',
  decidedBy: 'model',
  signal: { name: 'model_stop' },
  phase: 'ending',
};

export const CANCELLED: End = {
  reason: 'ABORTED',
  detail: 'user_cancel',
  decidedBy: 'user',
  signal: { name: 'cancel_request' },
  phase: 'sampling',
};

export const CANCEL: AskedEnd = { end: CANCELLED, atMs: T0 };

export const endOf = (state: TurnState) => (state.phase.kind === 'ending' ? state.phase.end : null);
