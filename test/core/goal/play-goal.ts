import { applyGoal } from '../../../workflows/core/goal/goal-apply.ts';
import type { GoalCommand, GoalEvent, JudgeVerdict } from '../../../workflows/core/goal/goal-event.ts';
import type { GoalState } from '../../../workflows/core/goal/goal-state.ts';
import { type GoalStep, nextGoalStep } from '../../../workflows/core/goal/goal-step.ts';
import { openGoal } from '../../../workflows/core/goal/open-goal.ts';
import { frozen } from '../fixtures.ts';
import { GoalWorld, type Pick, type Untimed } from './goal-world.ts';

export interface PlayedGoal {
  readonly heard: readonly { readonly before: GoalState; readonly event: GoalEvent; readonly after: GoalState }[];
  readonly steps: readonly { readonly state: GoalState; readonly step: GoalStep; readonly nowMs: number }[];
  /** Everything that the store knows at the end. */
  readonly world: GoalWorld;
  readonly last: GoalState;
  /** Rounds that a goal which is over still had in the session, and had not cancelled. */
  readonly leftBehind: readonly number[];
}

export interface PlayOptions {
  readonly rounds: number;
  /** The engine forgets the goal now and then: it begins again from what the store has. */
  readonly isForgotten?: boolean;
}

/** A session, its people and a clock, all of chance; the goal's workflow as it is. */
export function playGoal(pick: Pick, { rounds, isForgotten = false }: PlayOptions): PlayedGoal {
  const player = new Player(pick, isForgotten);
  for (let n = 0; n < rounds; n += 1) {
    player.chance();
    player.go();
  }
  return player.played();
}

const FREE = { tokens: 0, microUsd: 0 } as const;

class Player {
  readonly #world: GoalWorld;
  readonly #isForgotten: boolean;
  #nowMs = 0;
  #state: GoalState;
  /** What the store would begin it again from, and how often it has. */
  #copy: GoalState;
  #lives = 0;
  readonly #heard: { before: GoalState; event: GoalEvent; after: GoalState }[] = [];
  readonly #steps: { state: GoalState; step: GoalStep; nowMs: number }[] = [];
  readonly #leftBehind: number[] = [];
  #commands = 0;
  /** Words that are still on their way. */
  #words = 0;
  #isCalm = false;
  /** An activity is on its way to the store, so that nobody forgets the goal now: its result may get lost. */
  #isAsking = false;

  constructor(pick: Pick, isForgotten: boolean) {
    const world = new GoalWorld(pick);
    this.#world = world;
    this.#isForgotten = isForgotten;
    const budget = {
      turns: world.int(1, 12),
      tokens: world.int(1, 5_000),
      microUsd: world.one([null, 8_000]),
      runningMs: 100_000,
    };
    this.#state = openGoal({ budget, sceptics: world.int(1, 3), atMs: 0 });
    this.#copy = this.#state;
  }

  played(): PlayedGoal {
    this.#isCalm = true;
    // All words come, and so does the sweeper's.
    for (let n = 0; n < 2; n += 1) {
      this.#hear({ kind: 'noticed' });
      this.go();
    }
    const leftBehind = this.#leftBehind;
    return { heard: this.#heard, steps: this.#steps, world: this.#world, last: this.#state, leftBehind };
  }

  /** Something happens outside, or time passes. */
  chance(): void {
    const world = this.#world;
    const what = world.int(0, 11);
    if (what <= 3 && world.turnGoesOn()) this.#tell();
    if (what === 4) world.says();
    if (what === 5) {
      world.wakeUp();
      this.#tell();
    }
    // Often two in a row: what the second one meets is rare otherwise.
    for (let more = what === 6 ? 1 : 0; more > 0; more = world.int(0, 1)) this.#command();
    if (what === 7) this.#deliver();
    if (what === 8 && world.int(0, 3) === 0) {
      world.takeDirectiveOut();
      this.#tell();
    }
    if (what === 9 && this.#isForgotten && !this.#isAsking && world.int(0, 3) === 0) this.#forget();
    if (what >= 10) this.#nowMs += world.int(0, 4_000_000);
  }

  /** As far as it comes by itself. */
  go(): void {
    for (let n = 0; n < 400; n += 1) {
      const step = nextGoalStep(this.#state, this.#nowMs);
      this.#steps.push({ state: this.#state, step, nowMs: this.#nowMs });
      const life = this.#lives;
      this.#isAsking = true;
      this.#meanwhile(step);
      this.#isAsking = false;
      if (step.kind === 'finish') this.#leftBehind.push(...this.#world.wantedRounds());
      const event = this.#answer(step);
      if (event === null) return;
      this.#meanwhile(step);
      // Whoever asked is gone.
      if (life === this.#lives) this.#hear(event);
    }
    throw new Error('it spins');
  }

  /** While an activity runs the world goes on. */
  #meanwhile({ kind }: GoalStep): void {
    if (this.#isCalm || kind === 'await' || kind === 'finish' || kind === 'limited') return;
    if (this.#world.int(0, 4) === 0) this.chance();
  }

  /** A word is late, or comes twice. */
  #tell(): void {
    this.#words += this.#world.int(1, 2);
    if (this.#world.int(0, 2) > 0) this.#deliver();
  }

  #deliver(): void {
    for (; this.#words > 0; this.#words -= 1) this.#hear({ kind: 'noticed' });
  }

  #forget(): void {
    this.#lives += 1;
    this.#state = JSON.parse(JSON.stringify(this.#copy)) as GoalState;
    this.#hear({ kind: 'noticed' });
  }

  #answer(step: GoalStep): Untimed | null {
    const world = this.#world;
    switch (step.kind) {
      case 'record':
        for (const fact of step.facts) world.take(fact);
        this.#copy = { ...(this.#steps.at(-1)?.state ?? this.#copy), facts: [] };
        return { kind: 'recorded', upTo: step.facts[step.facts.length - 1]?.n ?? 0 };
      case 'look':
        return world.looked(step);
      case 'direct':
        return world.direct(step, this.#steps.at(-1)?.state ?? this.#state);
      case 'limited':
        return { kind: 'limited' };
      case 'check':
        return world.asked(`check ${step.turn}`, () => ({
          kind: 'checked',
          outcome: world.one(['passed', 'failed', 'none', 'none', 'none'] as const),
          evidence: `e${world.int(0, 3)}`,
          verdict: null,
          usage: FREE,
        }));
      case 'judge':
        return world.asked(`judge ${step.turn} ${step.failures}`, () => ({
          kind: 'judged',
          verdict: this.#verdict(),
          usage: this.#bill(),
        }));
      case 'doubt':
        return world.asked(`doubt ${step.turn} ${step.sceptic} ${step.failures}`, () => ({
          kind: 'doubted',
          vote: this.#vote(),
          usage: this.#bill(),
        }));
      case 'stopGate':
        return world.asked(`gate ${step.turn}`, () => ({
          kind: 'gated',
          answer: world.one(['pass', 'block', 'block', 'stop'] as const),
          verdict: 'g',
          usage: FREE,
        }));
      case 'await':
        if (step.untilMs === null || step.untilMs > this.#nowMs) return null;
        return { kind: 'time' };
      case 'finish':
        return null;
    }
  }

  #bill() {
    const tokens = this.#world.int(0, 20);
    return { tokens, microUsd: 2 * tokens };
  }

  #verdict(): JudgeVerdict {
    const verdict = 'v';
    return this.#world.one([
      { kind: 'continue', gap: `gap ${this.#world.int(0, 5)}`, verdict },
      { kind: 'candidate_complete', verdict },
      { kind: 'blocked', blocker: `b${this.#world.int(0, 1)}`, verdict },
      { kind: 'waiting', awaited: this.#world.awaited(this.#nowMs), verdict },
      { kind: 'unusable' },
      { kind: 'unaffordable', limit: 'tokens', needed: 9_999 },
    ] as const);
  }

  #vote() {
    const verdict = 'v';
    return this.#world.one([
      { kind: 'approve', verdict },
      { kind: 'refute', confidence: 'high', verdict },
      { kind: 'refute', confidence: 'low', verdict },
      { kind: 'unusable' },
      { kind: 'unaffordable', limit: 'tokens', needed: 9_999 },
    ] as const);
  }

  #command(): void {
    const world = this.#world;
    const id = `c${this.#commands}`;
    if (world.int(0, 3) > 0) this.#commands += 1;
    const command: GoalCommand = world.one([
      { id, kind: 'pause' },
      { id, kind: 'resume' },
      { id, kind: 'resume' },
      { id, kind: 'edit', budget: { turns: world.int(1, 20) }, wish: 'changed' },
      { id, kind: 'edit', budget: { tokens: world.int(1, 5_000) }, wish: 'same' },
      ...(world.int(0, 2) === 0 ? [{ id, kind: 'cancel' } as const] : []),
    ] as const);
    this.#hear({ kind: 'commanded', command });
  }

  #hear(event: Untimed): void {
    const before = frozen(this.#state);
    const timed = { ...event, atMs: this.#nowMs } as GoalEvent;
    this.#state = applyGoal(before, timed);
    this.#heard.push({ before, event: timed, after: this.#state });
  }
}
