import fc from 'fast-check';
import { expect, test } from 'vitest';
import { goalLimitReached } from '../../../workflows/core/goal/goal-limits.ts';
import { isFinal } from '../../../workflows/core/goal/goal-state.ts';
import { type PlayedGoal, playGoal } from './play-goal.ts';

/** Holds for whole goals against a world of chance: what fails is printed with its seed. */
function always(name: string, holds: (played: PlayedGoal) => void): void {
  test(name, () => {
    fc.assert(
      fc.property(fc.gen(), (pick) => holds(playGoal(pick, 60))),
      { numRuns: 150 },
    );
  });
}

always('no round begins with a budget that is used up, and no more rounds than allowed', ({ steps, heard }) => {
  for (const { state, step } of steps) if (step.kind === 'direct') expect(goalLimitReached(state)).toBeNull();
  for (const { before, event, after } of heard) {
    const edited = event.kind === 'commanded' && event.command.kind === 'edit';
    if (!edited && after.spent.turns > before.spent.turns) {
      expect(after.rounds).toBeGreaterThanOrEqual(after.spent.turns);
    }
  }
});

always('no round runs twice: they are queued in their order, one at a time', ({ queued }) => {
  expect(queued.map(({ round }) => round)).toEqual(queued.map((_, n) => n + 1));
});

always('a message of a person is never overtaken', ({ queued }) => {
  for (const { waiting } of queued) expect(waiting).toBe(0);
});

always('a final state stays', ({ heard }) => {
  for (const { before, after } of heard) if (isFinal(before.status)) expect(after.status).toEqual(before.status);
});

always('no round is begun before its time', ({ steps }) => {
  for (const { state, step, nowMs } of steps) {
    if (step.kind !== 'direct' || state.status.kind !== 'active' || state.status.doing.kind !== 'due') continue;
    expect(nowMs).toBeGreaterThanOrEqual(state.status.doing.notBeforeMs);
  }
});

always('each wake is settled once, or still remembered', ({ facts, wakes, last, heard }) => {
  const settled = [...facts, ...last.facts].flatMap((fact) => (fact.kind === 'wake_settled' ? [fact.wake] : []));
  expect(new Set(settled).size).toBe(settled.length);
  const came = heard.flatMap(({ event }) => (event.kind === 'looked' ? event.wakes.map(({ id }) => id) : []));
  const open = last.pendingWake === null ? [] : [last.pendingWake];
  expect(came.toSorted()).toEqual([...settled, ...open].toSorted());
  for (const id of came) expect(wakes).toContain(id);
});

always('what is told outside is told once, in order, and says where the goal stands', ({ facts, last }) => {
  const all = [...facts, ...last.facts];
  expect(all.map(({ n }) => n)).toEqual(all.map((_, n) => n + 1));
  const moved = all.flatMap((fact) => (fact.kind === 'moved' ? [fact.to] : []));
  expect(moved[moved.length - 1]?.kind).toBe(last.status.kind);
});

always('each turn is counted once', ({ heard, last }) => {
  const turns = new Map(
    heard.flatMap(({ event }) => (event.kind === 'looked' ? event.turns.map((each) => [each.n, each] as const) : [])),
  );
  const counted = [...turns.values()];
  expect(last.spent.turns).toBe(counted.filter(({ round }) => round !== null).length);
  expect(last.spent.runningMs).toBe(counted.reduce((sum, { runningMs }) => sum + runningMs, 0));
});

always('a state is small, and one plain JSON value', ({ heard }) => {
  for (const { after } of heard) {
    const text = JSON.stringify(after);
    expect(JSON.parse(text)).toEqual(after);
    expect(text.length).toBeLessThan(12_000);
  }
});
