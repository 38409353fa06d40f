import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { goalLimitReached } from '../../../workflows/core/goal/goal-limits.ts';
import { isFinal } from '../../../workflows/core/goal/goal-state.ts';
import { ONE_REQUEST } from './goal-world.ts';
import { type PlayedGoal, playGoal } from './play-goal.ts';

const RUNS = Number(process.env.GOAL_RUNS ?? 50);

/** Holds for whole goals against a world of chance: what fails is printed with its seed. */
function always(name: string, holds: (played: PlayedGoal) => void, { forgotten = [false, true] } = {}): void {
  test(name, () => {
    for (const isForgotten of forgotten)
      fc.assert(
        fc.property(fc.gen(), (pick) => holds(playGoal(pick, { rounds: 60, isForgotten }))),
        { numRuns: RUNS },
      );
  });
}

/** Where the engine forgets a goal, the bill lacks a judge that it had asked, and the goal a directive that it had queued. */
const IN_ONE_LIFE = { forgotten: [false] };

describe('no budget is exceeded', () => {
  always('no round begins with one that is used up', ({ steps }) => {
    for (const { state, step } of steps) if (step.kind === 'direct') expect(goalLimitReached(state)).toBeNull();
  });

  // Whatever was spent meanwhile, by people too, is counted before the next round.
  always(
    'a round is given exactly what is left',
    ({ world }) => {
      for (const { limits, budget, spent } of world.queued) {
        expect(limits).toEqual({
          maxTokens: budget.tokens - spent.tokens,
          maxMicroUsd: budget.microUsd === null ? null : budget.microUsd - 2 * spent.tokens,
          maxRunningMs: budget.runningMs - spent.runningMs,
        });
      }
    },
    // A verdict that is told again in a second life counts twice until the next look.
    { forgotten: [false] },
  );

  always('a round is never given more than is left', ({ world }) => {
    for (const { limits, budget, spent } of world.queued)
      expect(limits.maxTokens).toBeLessThanOrEqual(budget.tokens - spent.tokens);
  });

  always('no more rounds than allowed, and no more work', ({ world }) => {
    for (const { budget, spent } of world.queued) {
      expect(spent.turns).toBeLessThan(budget.turns);
      expect(spent.runningMs).toBeLessThan(budget.runningMs);
    }
  });

  always('no round ends past it by more than its last request', ({ world }) => {
    for (const { allowed, before, after } of world.ran)
      expect(after).toBeLessThanOrEqual(Math.max(allowed, before) + ONE_REQUEST);
  });

  always('each turn is counted once', ({ world, last }) => {
    if (isFinal(last.status)) return;
    const { turns, runningMs } = world.spent();
    expect([last.spent.turns, last.spent.runningMs]).toEqual([turns, runningMs]);
  });

  always('each verdict is counted once', ({ world, last }) => {
    if (isFinal(last.status)) return;
    expect(last.spent.tokens).toBe(world.spent().tokens);
  });
});

describe('no round runs twice', () => {
  always('they are queued in their order, one at a time', ({ world }) => {
    expect(world.queued.map(({ round }) => round)).toEqual(world.queued.map((_, n) => n + 1));
    const ran = world.turns.flatMap(({ round }) => (round === null ? [] : [round]));
    expect(ran).toEqual([...new Set(ran)].toSorted((a, b) => a - b));
  });

  always('none is queued while a turn runs, or before its end was looked at', ({ world }) => {
    for (const { open, unseen } of world.queued) expect([open, unseen]).toEqual([0, 0]);
  });

  always('none begins before its time', ({ steps }) => {
    for (const { state, step, nowMs } of steps) {
      if (step.kind !== 'direct' || state.status.kind !== 'active' || state.status.doing.kind !== 'due') continue;
      expect(nowMs).toBeGreaterThanOrEqual(state.status.doing.notBeforeMs);
    }
  });
});

always('a goal that waits for a round has one in its session', ({ last, world }) => {
  const { status } = last;
  if (status.kind !== 'active' || status.doing.kind !== 'running') return;
  expect(world.wantedRounds()).toContain(status.doing.round);
});

always('a message of a person is never overtaken', ({ world }) => {
  for (const { waiting } of world.queued) expect(waiting).toBe(0);
});

describe('what is final', () => {
  always('stays', ({ heard }) => {
    for (const { before, after } of heard) if (isFinal(before.status)) expect(after.status).toEqual(before.status);
  });

  always('is billed nothing more by what follows', ({ heard }) => {
    for (const { before, event, after } of heard)
      if (isFinal(before.status) && event.kind === 'looked') expect(after.spent).toEqual(before.spent);
  });

  always(
    'leaves no round behind that nobody has cancelled',
    ({ leftBehind }) => {
      expect(leftBehind).toEqual([]);
    },
    IN_ONE_LIFE,
  );
});

describe('wakes', () => {
  always('each is settled once, or still remembered', ({ world, last }) => {
    for (const [id, { settled }] of world.wakes) {
      const isRemembered = last.pendingWakes.some((each) => each.id === id);
      expect([id, settled]).toEqual([id, isRemembered ? 0 : 1]);
    }
  });

  always('a wait for an event is ended by no other event', ({ world }) => {
    const fired = world.facts.flatMap((fact) =>
      fact.kind === 'wake_settled' && fact.outcome === 'fired' && fact.why === 'waiting(event)' ? [fact.wake] : [],
    );
    for (const id of fired) expect(['ci', null]).toContain(world.wakes.get(id)?.event);
  });
});

always('what is told outside is told once, in order, and says where the goal stands', ({ world, last }) => {
  expect(world.facts.map(({ n }) => n)).toEqual(world.facts.map((_, n) => n + 1));
  const moved = world.facts.flatMap((fact) => (fact.kind === 'moved' ? [fact.to] : []));
  expect(moved[moved.length - 1]?.kind).toBe(last.status.kind);
});

always('a state is small, and one plain JSON value', ({ heard }) => {
  for (const { after } of heard) {
    const text = JSON.stringify(after);
    expect(JSON.parse(text)).toEqual(after);
    expect(text.length).toBeLessThan(12_000);
  }
});
