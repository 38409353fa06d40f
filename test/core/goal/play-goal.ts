import fc from 'fast-check';
import { END_DETAILS, type End } from '../../../workflows/core/ends.ts';
import { applyGoal } from '../../../workflows/core/goal/goal-apply.ts';
import type { EndedTurn, GoalCommand, GoalEvent, JudgeVerdict } from '../../../workflows/core/goal/goal-event.ts';
import { type AwaitedBy, type GoalFact, type GoalState } from '../../../workflows/core/goal/goal-state.ts';
import { type GoalStep, nextGoalStep } from '../../../workflows/core/goal/goal-step.ts';
import { openGoal } from '../../../workflows/core/goal/open-goal.ts';
import { frozen } from '../fixtures.ts';

type Pick = fc.GeneratorValue;

export interface PlayedGoal {
  readonly heard: readonly { readonly before: GoalState; readonly event: GoalEvent; readonly after: GoalState }[];
  readonly steps: readonly { readonly state: GoalState; readonly step: GoalStep; readonly nowMs: number }[];
  /** What was told outside, in this order. */
  readonly facts: readonly GoalFact[];
  /** Rounds whose directive was queued, and how many of a person's messages waited then. */
  readonly queued: readonly { readonly round: number; readonly waiting: number }[];
  readonly wakes: readonly string[];
  readonly last: GoalState;
}

const ENDS = Object.entries(END_DETAILS).flatMap(([reason, details]) =>
  Object.entries(details).map(([detail, by]) => ({ reason, detail, decidedBy: by === 'inherited' ? 'user' : by })),
) as unknown as readonly EndedTurn['end'][];
const GOOD = ENDS.filter(({ detail }) => detail === ('final_answer' satisfies End['detail']));

/** A session, its people and a clock, all of chance; the goal's workflow as it is. */
export function playGoal(pick: Pick, rounds: number): PlayedGoal {
  const world = new World(pick);
  for (let n = 0; n < rounds; n += 1) {
    world.chance();
    world.go();
  }
  return world.played();
}

class World {
  readonly #pick: Pick;
  #nowMs = 0;
  #state: GoalState;
  readonly #heard: { before: GoalState; event: GoalEvent; after: GoalState }[] = [];
  readonly #steps: { state: GoalState; step: GoalStep; nowMs: number }[] = [];
  readonly #facts: GoalFact[] = [];
  readonly #queued: { round: number; waiting: number }[] = [];
  readonly #wakes: string[] = [];
  readonly #turns: EndedTurn[] = [];
  #commands = 0;
  #newWakes: string[] = [];
  /** The directive in the queue; a person's messages that wait. */
  #directive: number | null = null;
  #waiting = 0;

  constructor(pick: Pick) {
    this.#pick = pick;
    const budget = { turns: this.#int(1, 12), tokens: this.#int(1, 5_000), microUsd: null, runningMs: 10_000_000 };
    this.#state = openGoal({ budget, sceptics: this.#int(1, 3), atMs: 0 });
  }

  played(): PlayedGoal {
    return {
      heard: this.#heard,
      steps: this.#steps,
      facts: this.#facts,
      queued: this.#queued,
      wakes: this.#wakes,
      last: this.#state,
    };
  }

  /** Something happens outside, or time passes. */
  chance(): void {
    const what = this.#int(0, 9);
    if (what <= 3) this.#runTurn();
    if (what === 4) this.#waiting += 1;
    if (what === 5) this.#wake();
    if (what === 6) this.#command();
    if (what >= 7) this.#nowMs += this.#int(0, 4_000_000);
  }

  /** As far as it comes by itself. */
  go(): void {
    for (let n = 0; n < 200; n += 1) {
      const step = nextGoalStep(this.#state, this.#nowMs);
      this.#steps.push({ state: this.#state, step, nowMs: this.#nowMs });
      const event = this.#answer(step);
      if (event === null) return;
      this.#hear(event);
    }
    throw new Error('it spins');
  }

  #answer(step: GoalStep): Untimed | null {
    switch (step.kind) {
      case 'record':
        this.#facts.push(...step.facts);
        for (const fact of step.facts) this.#take(fact);
        return { kind: 'recorded', upTo: step.facts[step.facts.length - 1]?.n ?? 0 };
      case 'look': {
        const wakes = this.#newWakes.map((id) => ({ id, event: null }));
        this.#newWakes = [];
        return {
          kind: 'looked',
          upTo: step.upTo,
          // The rows of turns that were told already may come once more.
          turns: this.#turns.filter(({ n }) => n > step.afterTurn - this.#int(0, 1)),
          wakes,
          withdrawn: null,
        };
      }
      case 'direct': {
        const isBusy = this.#waiting > 0 || this.#directive !== null;
        if (!isBusy) {
          this.#queued.push({ round: step.round, waiting: this.#waiting });
          this.#directive = step.round;
        }
        return { kind: 'directed', round: step.round, outcome: isBusy ? 'busy' : 'queued' };
      }
      case 'limited':
        return { kind: 'limited' };
      case 'check':
        return {
          kind: 'checked',
          outcome: this.#one(['passed', 'failed', 'none', 'none', 'none'] as const),
          evidence: `e${this.#int(0, 3)}`,
          verdict: null,
        };
      case 'judge':
        return { kind: 'judged', verdict: this.#verdict(), usage: { tokens: this.#int(0, 20), microUsd: 0 } };
      case 'doubt': {
        const verdict = 'v';
        const vote = this.#one([
          { kind: 'approve', verdict },
          { kind: 'refute', confidence: 'high', verdict },
          { kind: 'refute', confidence: 'low', verdict },
          { kind: 'unusable' },
        ] as const);
        return { kind: 'doubted', vote, usage: { tokens: this.#int(0, 20), microUsd: 0 } };
      }
      case 'stopGate':
        return { kind: 'gated', answer: this.#one(['pass', 'block', 'block', 'stop'] as const), verdict: 'g' };
      case 'await':
        if (step.untilMs === null || step.untilMs > this.#nowMs) return null;
        return { kind: 'time' };
      case 'finish':
        return null;
    }
  }

  #verdict(): JudgeVerdict {
    const verdict = 'v';
    return this.#one([
      { kind: 'continue', gap: `gap ${this.#int(0, 5)}`, verdict },
      { kind: 'candidate_complete', verdict },
      { kind: 'blocked', blocker: `b${this.#int(0, 1)}`, verdict },
      { kind: 'waiting', awaited: this.#awaited(), verdict },
      { kind: 'unusable' },
    ] as const);
  }

  #awaited(): AwaitedBy {
    return this.#one([
      { on: 'time', untilMs: this.#nowMs + this.#int(0, 100_000) },
      { on: 'event', event: 'ci', untilMs: null },
      { on: 'answer' },
    ] as const);
  }

  /** People first; then the directive. */
  #runTurn(): void {
    if (this.#waiting === 0 && this.#directive === null) return;
    const round = this.#waiting > 0 ? null : this.#directive;
    if (this.#waiting > 0) this.#waiting -= 1;
    else this.#directive = null;
    const n = this.#turns.length + 1;
    const end = this.#one(this.#int(0, 1) === 0 ? GOOD : ENDS);
    this.#turns.push({
      turn: `ses/${n}`,
      n,
      round,
      end,
      waitsFor: end.reason === 'BLOCKED' && this.#int(0, 1) === 0 ? this.#awaited() : null,
      usage: { tokens: this.#int(0, 300), microUsd: 0 },
      runningMs: this.#int(0, 10_000),
      reply: `r${this.#int(0, 2)}`,
      acted: this.#int(0, 2) === 0,
      claim: null,
    });
    // Twice delivered is once heard.
    for (let told = this.#int(1, 2); told > 0; told -= 1) this.#hear({ kind: 'noticed' });
  }

  #wake(): void {
    const id = `w${this.#wakes.length}`;
    this.#wakes.push(id);
    this.#newWakes.push(id);
    this.#hear({ kind: 'noticed' });
  }

  #command(): void {
    const id = `c${this.#commands}`;
    if (this.#int(0, 3) > 0) this.#commands += 1;
    const command: GoalCommand = this.#one([
      { id, kind: 'pause' },
      { id, kind: 'resume' },
      { id, kind: 'resume' },
      { id, kind: 'edit', budget: { turns: this.#int(1, 20) }, objective: 'changed' },
      ...(this.#int(0, 20) === 0 ? [{ id, kind: 'cancel' } as const] : []),
    ] as const);
    this.#hear({ kind: 'commanded', command });
  }

  /** The store does what it was told. */
  #take(fact: GoalFact): void {
    if (fact.kind === 'withdrawn' && this.#directive === fact.round) this.#directive = null;
  }

  #hear(event: Untimed): void {
    const before = frozen(this.#state);
    const timed = { ...event, atMs: this.#nowMs } as GoalEvent;
    this.#state = applyGoal(before, timed);
    this.#heard.push({ before, event: timed, after: this.#state });
  }

  #int(min: number, max: number): number {
    return this.#pick(fc.integer, { min, max });
  }

  #one<T>(of: readonly T[]): T {
    return of[this.#int(0, of.length - 1)] as T;
  }
}

type Untimed = GoalEvent extends infer E ? (E extends GoalEvent ? Omit<E, 'atMs'> : never) : never;
