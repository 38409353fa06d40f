import fc from 'fast-check';
import { END_DETAILS, type End } from '../../../workflows/core/ends.ts';
import type { EndedTurn, GoalEvent, GoalUsage } from '../../../workflows/core/goal/goal-event.ts';
import type { CameWake, GoalBudget, GoalFact, GoalState } from '../../../workflows/core/goal/goal-state.ts';
import type { RoundLimits } from '../../../workflows/core/goal/goal-limits.ts';
import type { GoalStep } from '../../../workflows/core/goal/goal-step.ts';

export type Pick = fc.GeneratorValue;

/** A directive that the store took, and what was true at that moment. */
export interface Queued {
  readonly round: number;
  /** A person's messages that waited, turns that ran, and ends that the goal had not looked at. */
  readonly waiting: number;
  readonly open: number;
  readonly unseen: number;
  readonly limits: RoundLimits;
  readonly budget: GoalBudget;
  readonly spent: Spent;
}

export interface Spent {
  readonly tokens: number;
  readonly turns: number;
  readonly runningMs: number;
}

/** A turn of a round: what all had spent before and after it. */
export interface RanRound {
  readonly round: number;
  readonly allowed: number;
  readonly before: number;
  readonly after: number;
}

interface OpenTurn {
  readonly round: number | null;
  readonly maxTokens: number;
  readonly before: number;
  isCancelled: boolean;
}

const ENDS = Object.entries(END_DETAILS).flatMap(([reason, details]) =>
  Object.entries(details).map(([detail, by]) => ({ reason, detail, decidedBy: by === 'inherited' ? 'user' : by })),
) as unknown as readonly EndedTurn['end'][];
const endsBy = (name: End['detail']) => ENDS.filter(({ detail }) => detail === name);
const GOOD = endsBy('final_answer');

/** A limit is looked at before each request: the last one may pass it by so much. */
export const ONE_REQUEST = 50;

/** What a goal has around it, as the store keeps it: its session's queue and turns, wakes, and the bill. */
export class GoalWorld {
  readonly #pick: Pick;
  readonly queued: Queued[] = [];
  readonly ran: RanRound[] = [];
  readonly facts: GoalFact[] = [];
  readonly wakes = new Map<string, Omit<CameWake, 'id'> & { settled: number }>();
  readonly turns: (EndedTurn & { readonly usage: GoalUsage })[] = [];
  readonly #verdicts = new Map<string, { readonly event: unknown; readonly tokens: number }>();
  #directive: { readonly round: number; readonly maxTokens: number; readonly spent: number } | null = null;
  #withdrawn: number | null = null;
  #open: OpenTurn | null = null;
  #waiting = 0;

  constructor(pick: Pick) {
    this.#pick = pick;
  }

  spent(): Spent {
    const judged = [...this.#verdicts.values()].reduce((sum, { tokens }) => sum + tokens, 0);
    return {
      tokens: this.turns.reduce((sum, { usage }) => sum + usage.tokens, judged),
      turns: this.turns.filter(({ round }) => round !== null).length,
      runningMs: this.turns.reduce((sum, { runningMs }) => sum + runningMs, 0),
    };
  }

  /** Rounds that are still to come or to end, though nobody has cancelled them. */
  wantedRounds(): readonly number[] {
    const open = this.#open?.round != null && !this.#open.isCancelled ? [this.#open.round] : [];
    return this.#directive ? [this.#directive.round, ...open] : open;
  }

  says(): void {
    this.#waiting += 1;
  }

  wakeUp(): void {
    const event = this.one([null, null, 'ci', 'deploy'] as const);
    const to = event === null ? 'goal' : this.one(['goal', 'session'] as const);
    this.wakes.set(`w${this.wakes.size}`, { event, to, settled: 0 });
  }

  /** Somebody takes the directive out of the queue. */
  takeDirectiveOut(): void {
    this.#withdraw(this.#directive?.round ?? null);
  }

  #withdraw(round: number | null): void {
    if (round === null || this.#directive?.round !== round) return;
    this.#directive = null;
    this.#withdrawn = round;
  }

  /** People first; true where a turn has ended. */
  turnGoesOn(): boolean {
    if (this.#open) {
      this.#end(this.#open);
      return true;
    }
    const before = this.spent().tokens;
    if (this.#waiting > 0) {
      this.#waiting -= 1;
      this.#open = { round: null, maxTokens: 300, before, isCancelled: false };
    } else if (this.#directive) {
      const { round, maxTokens, spent } = this.#directive;
      this.#directive = null;
      this.#open = { round, maxTokens: Math.max(0, maxTokens - (before - spent)), before, isCancelled: false };
    }
    return false;
  }

  #end({ round, maxTokens, before, isCancelled }: OpenTurn): void {
    this.#open = null;
    const n = this.turns.length + 1;
    const end = this.one(isCancelled ? endsBy('user_cancel') : this.int(0, 1) === 0 ? GOOD : ENDS);
    const tokens = Math.min(this.int(0, 400), maxTokens + this.int(0, ONE_REQUEST));
    this.turns.push({
      turn: `ses/${n}`,
      n,
      round,
      end,
      waitsFor: end.reason === 'BLOCKED' && this.int(0, 1) === 0 ? this.awaited(0) : null,
      limit: this.one([null, 'tokens', 'usd'] as const),
      usage: { tokens, microUsd: 2 * tokens },
      runningMs: this.int(0, 10_000),
      reply: `r${this.int(0, 2)}`,
      acted: this.int(0, 2) === 0,
      claim: this.int(0, 3) === 0 ? { kind: 'waiting', awaited: this.awaited(0) } : null,
    });
    const budget = this.queued.find((each) => each.round === round)?.budget;
    if (round !== null && budget) this.ran.push({ round, allowed: budget.tokens, before, after: this.spent().tokens });
  }

  looked({ upTo, afterTurn }: GoalStep & { readonly kind: 'look' }): Untimed {
    return {
      kind: 'looked',
      upTo,
      // The rows of turns that were told already may come once more.
      turns: this.turns.filter(({ n }) => n > afterTurn - this.int(0, 1)),
      wakes: [...this.wakes].flatMap(([id, { event, to, settled }]) => (settled > 0 ? [] : [{ id, event, to }])),
      taken: [...this.wakes].flatMap(([id, { to, settled }]) =>
        to === 'session' && settled === 0 && this.int(0, 9) === 0 ? [id] : [],
      ),
      bill: {
        spent: { tokens: this.spent().tokens, microUsd: 2 * this.spent().tokens },
        held: { tokens: 0, microUsd: 0 },
      },
      begun: this.queued.at(-1)?.round ?? 0,
      withdrawn: this.queued.at(-1)?.round === this.#withdrawn ? this.#withdrawn : null,
    };
  }

  /** As the store takes a directive: once a round, into an idle session where nobody waits. */
  direct({ round, limits, afterTurn }: GoalStep & { readonly kind: 'direct' }, { budget }: GoalState): Untimed {
    const answer = (outcome: 'queued' | 'busy') => ({ kind: 'directed', round, outcome }) as const;
    if (this.queued.some((each) => each.round === round)) return answer('queued');
    const unseen = this.turns.filter(({ n }) => n > afterTurn).length;
    if (this.#waiting > 0 || this.#directive || this.#open || unseen > 0) return answer('busy');
    const spent = this.spent();
    this.queued.push({ round, waiting: this.#waiting, open: 0, unseen, limits, budget, spent });
    this.#directive = { round, maxTokens: limits.maxTokens, spent: spent.tokens };
    return answer('queued');
  }

  /** What was told of one try is told again, and was paid once. */
  asked<E extends Untimed>(key: string, ask: () => E & { readonly usage: GoalUsage }): E {
    const known = this.#verdicts.get(key) ?? { event: ask(), tokens: 0 };
    const event = known.event as E & { readonly usage: GoalUsage };
    this.#verdicts.set(key, { event, tokens: event.usage.tokens });
    return event;
  }

  /** The store does what it is told. */
  take(fact: GoalFact): void {
    this.facts.push(fact);
    if (fact.kind === 'withdrawn') this.#withdraw(fact.round);
    if (fact.kind === 'turn_cancelled') {
      this.#withdraw(this.#directive?.round ?? null);
      if (this.#open && this.#open.round !== null) this.#open.isCancelled = true;
    }
    const woken = fact.kind === 'wake_settled' ? this.wakes.get(fact.wake) : undefined;
    if (woken) woken.settled += 1;
  }

  awaited(nowMs: number) {
    return this.one([
      { on: 'time', untilMs: nowMs + this.int(0, 100_000) },
      { on: 'event', event: 'ci', untilMs: null },
      { on: 'answer', untilMs: nowMs + this.int(0, 100_000) },
    ] as const);
  }

  int(min: number, max: number): number {
    return this.#pick(fc.integer, { min, max });
  }

  one<T>(of: readonly T[]): T {
    return of[this.int(0, of.length - 1)] as T;
  }
}

export type Untimed = GoalEvent extends infer E ? (E extends GoalEvent ? Omit<E, 'atMs'> : never) : never;
