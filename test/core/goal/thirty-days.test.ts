import { expect, test } from 'vitest';
import { applyGoal } from '../../../workflows/core/goal/goal-apply.ts';
import type { EndedTurn, GoalEvent } from '../../../workflows/core/goal/goal-event.ts';
import type { CameWake, GoalFact, GoalState } from '../../../workflows/core/goal/goal-state.ts';
import { nextGoalStep } from '../../../workflows/core/goal/goal-step.ts';
import { nameOf } from '../../../workflows/core/goal/moving.ts';
import { openGoal } from '../../../workflows/core/goal/open-goal.ts';
import { BUDGET, end, turn } from './goal-fixtures.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const TURN_MS = 600_000;

type Untimed = GoalEvent extends infer E ? (E extends GoalEvent ? Omit<E, 'atMs'> : never) : never;

/** A month on a clock that is moved: a wake each night, an outage on day 10, a pause from day 15 to 18. */
class Month {
  nowMs = 0;
  state: GoalState = openGoal({ budget: { ...BUDGET, turns: 100 }, sceptics: 1, atMs: 0 });
  readonly log: string[] = [];
  #turns: EndedTurn[] = [];
  #wakes: CameWake[] = [];
  #running: { readonly round: number; readonly endsMs: number } | null = null;
  readonly #away = { fromMs: 10 * DAY, toMs: 10 * DAY + 3 * HOUR };

  hear(event: Untimed): void {
    this.state = applyGoal(this.state, { ...event, atMs: this.nowMs } as GoalEvent);
  }

  wake(id: string): void {
    this.#wakes.push({ id, event: null, to: 'goal' });
    this.hear({ kind: 'noticed' });
  }

  /** Lets everything happen until then. */
  until(ms: number): void {
    for (;;) {
      const step = nextGoalStep(this.state, this.nowMs);
      if (step.kind !== 'await') {
        this.#take(step);
        continue;
      }
      const next = Math.min(
        step.untilMs ?? Number.POSITIVE_INFINITY,
        this.#running?.endsMs ?? Number.POSITIVE_INFINITY,
      );
      if (next > ms) break;
      this.nowMs = Math.max(this.nowMs, next);
      if (this.#running && this.#running.endsMs <= this.nowMs) this.#endTurn(this.#running.round);
      else this.hear({ kind: 'time' });
    }
    this.nowMs = ms;
  }

  #take(step: ReturnType<typeof nextGoalStep>): void {
    switch (step.kind) {
      case 'record':
        for (const fact of step.facts) this.#told(fact);
        return this.hear({ kind: 'recorded', upTo: step.facts.at(-1)?.n ?? 0 });
      case 'look': {
        const turns = this.#turns.filter(({ n }) => n > step.afterTurn);
        const bill = { spent: { tokens: 100 * this.#turns.length, microUsd: 0 }, held: { tokens: 0, microUsd: 0 } };
        const came = { turns, bill, wakes: this.#wakes, taken: [] };
        this.hear({ kind: 'looked', upTo: step.upTo, ...came, begun: 0, withdrawn: null });
        return;
      }
      case 'direct':
        this.#running = { round: step.round, endsMs: this.nowMs + TURN_MS };
        return this.hear({ kind: 'directed', round: step.round, outcome: 'queued' });
      case 'check':
        return this.hear({ kind: 'checked', outcome: 'none', evidence: '', verdict: null });
      default:
        throw new Error(`nobody thought of ${step.kind}`);
    }
  }

  #endTurn(round: number): void {
    this.#running = null;
    const n = this.#turns.length + 1;
    const isAway = this.nowMs >= this.#away.fromMs && this.nowMs < this.#away.toMs;
    const outcome: Partial<EndedTurn> = isAway
      ? { end: end('ERROR', 'provider_unavailable') }
      : { claim: { kind: 'waiting', awaited: { on: 'event', event: 'night', untilMs: null } } };
    this.#turns.push(turn(n, { round, ...outcome }));
    this.hear({ kind: 'noticed' });
  }

  #told(fact: GoalFact): void {
    const at = `day ${Math.floor(this.nowMs / DAY)}`;
    if (fact.kind === 'moved' && fact.to.kind !== 'active' && fact.to.kind !== 'waiting') {
      this.log.push(`${at}: ${nameOf(fact.to)}`);
    }
    if (fact.kind !== 'wake_settled') return;
    this.#wakes = this.#wakes.filter(({ id }) => id !== fact.wake);
    this.log.push(`${at}: ${fact.wake} ${fact.outcome} (${fact.why})`);
  }
}

test('a month: a wake each night, an outage, a pause; each wake has one outcome, and no money is lost', () => {
  const month = new Month();
  for (let day = 1; day <= 30; day += 1) {
    month.until(day * DAY);
    if (day === 15) month.hear({ kind: 'commanded', command: { id: 'p', kind: 'pause' } });
    if (day === 18) month.hear({ kind: 'commanded', command: { id: 'r', kind: 'resume' } });
    month.until(day * DAY + 2 * HOUR);
    month.wake(`night ${day}`);
  }
  month.until(31 * DAY);
  const usual = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, n) => `day ${from + n}: night ${from + n} fired (waiting(event))`);
  const asleep = (day: number) => `day ${day}: night ${day} recorded (paused(user))`;
  expect(month.log).toEqual([
    ...usual(1, 9),
    ...usual(10, 10),
    // Away at 02:10; tried again after 5, 15 and 60 minutes, the last one past the outage.
    'day 10: paused(infrastructure)',
    'day 10: paused(infrastructure)',
    'day 10: paused(infrastructure)',
    ...usual(11, 14),
    'day 15: paused(user)',
    ...[15, 16, 17].map(asleep),
    ...usual(18, 30),
  ]);
  // The first round, one a night but for three nights, the resume, and three in vain.
  expect(month.state.spent.turns).toBe(1 + 27 + 1 + 3);
  expect(month.state.spent.runningMs).toBe(month.state.spent.turns * 1_000);
  expect(month.state.brakes.outages).toBe(0);
});
