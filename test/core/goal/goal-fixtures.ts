import type { End } from '../../../workflows/core/ends.ts';
import { applyGoal } from '../../../workflows/core/goal/goal-apply.ts';
import type { EndedTurn, GoalBill, GoalEvent } from '../../../workflows/core/goal/goal-event.ts';
import type { CameWake, GoalState } from '../../../workflows/core/goal/goal-state.ts';
import { openGoal } from '../../../workflows/core/goal/open-goal.ts';

export const BUDGET = { turns: 50, tokens: 2_000_000, microUsd: null, runningMs: 86_400_000 } as const;
export const NO_COST = { tokens: 0, microUsd: 0 } as const;

type Untimed = GoalEvent extends infer E ? (E extends GoalEvent ? Omit<E, 'atMs'> : never) : never;

type Heard = Exclude<Untimed, { readonly kind: 'looked' }> | Looked;
/** Without a bill: each turn that was not seen before costs the same. */
type Looked = Omit<Untimed & { readonly kind: 'looked' }, 'bill' | 'begun' | 'taken'> & {
  readonly bill?: GoalBill;
  readonly begun?: number;
  readonly taken?: readonly string[];
};

export function after(state: GoalState, ...events: readonly (Heard & { readonly atMs?: number })[]): GoalState {
  return events.reduce<GoalState>((now, event) => {
    const timed = event.kind === 'looked' ? { bill: billAfter(now, event), begun: 0, taken: [], ...event } : event;
    return applyGoal(now, { atMs: now.atMs, ...timed } as GoalEvent);
  }, state);
}

function billAfter({ spent, held, seenTurn }: GoalState, { turns }: Looked): GoalBill {
  const fresh = turns.filter(({ n }) => n > (seenTurn?.n ?? 0)).length;
  return { spent: { tokens: spent.tokens + 100 * fresh, microUsd: spent.microUsd + 10 * fresh }, held };
}

export function end(reason: End['reason'], detail: End['detail'], decidedBy: End['decidedBy'] = 'runtime') {
  return { reason, detail, decidedBy } as EndedTurn['end'];
}

const FINAL = end('COMPLETED', 'final_answer', 'model');

export function turn(n: number, change: Partial<EndedTurn> = {}): EndedTurn {
  return {
    turn: `ses/${n}`,
    n,
    round: n,
    end: FINAL,
    waitsFor: null,
    limit: null,
    runningMs: 1_000,
    reply: `reply ${n}`,
    acted: false,
    claim: null,
    ...change,
  };
}

export const looked = (turns: readonly EndedTurn[], wakes: readonly (string | CameWake)[] = []): Looked => ({
  kind: 'looked',
  upTo: 0,
  turns,
  wakes: wakes.map((wake) => (typeof wake === 'string' ? { id: wake, event: null, to: 'goal' } : wake)),
  withdrawn: null,
});

/** Told of everything, so that the next step is the goal's own. */
export function quiet(state: GoalState): GoalState {
  return { ...state, facts: [], looked: state.heard };
}

export const OPENED = quiet(openGoal({ budget: BUDGET, sceptics: 1, atMs: 0 }));

/** The directive of round n is queued. */
export function running(n = 1, from: GoalState = OPENED): GoalState {
  return quiet(after(from, { kind: 'directed', round: n, outcome: 'queued' }));
}

/** The turn of round n ended so. */
export function ended(change: Partial<EndedTurn>, n = 1, from: GoalState = running(n)): GoalState {
  return quiet(after(from, looked([turn(n, change)])));
}
