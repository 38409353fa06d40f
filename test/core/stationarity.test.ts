import { describe, expect, test } from 'vitest';
import { apply } from '../../workflows/core/apply.ts';
import { nextStep } from '../../workflows/core/next-step.ts';
import type { CallRef } from '../../workflows/core/tools.ts';
import type { TurnEvent } from '../../workflows/core/turn-event.ts';
import type { TurnState } from '../../workflows/core/turn-state.ts';
import { endOf, ref, reply, T0, turn } from './fixtures.ts';

/** A step with these calls, all of which come back well. */
function step(state: TurnState, ...calls: readonly Partial<CallRef>[]): TurnState {
  const refs = calls.map((change, ordinal) => ref(ordinal, change));
  let next = apply(state, { kind: 'sampled', outcome: reply({ calls: refs }), drained: 0, dice: 0.5, atMs: T0 });
  for (const { ordinal } of refs) {
    next = apply(next, { kind: 'call_started', ordinal, atMs: T0 });
    next = apply(next, { kind: 'call_finished', ordinal, status: 'ok', atMs: T0 });
  }
  return apply(next, { kind: 'batch_returned', atMs: T0 });
}

function steps(times: number, ...calls: readonly Partial<CallRef>[]): TurnState {
  return Array.from({ length: times }).reduce<TurnState>((state) => step(state, ...calls), turn({ inbox: [] }));
}

const endAt = (state: TurnState) => {
  const next = nextStep(state, T0);
  return next.kind === 'finish' ? next.end : null;
};

describe.each<[name: string, calls: Partial<CallRef>[], nudge: number, end: number]>([
  ['readers', [{ tool: 'read_file' }, { tool: 'list_files', argsHash: 'b' }], 4, 8],
  ['a writer', [{ effect: 'idempotent' }], 8, 12],
  ['a reader beside a writer', [{}, { effect: 'once' }], 8, 12],
  ['a tool made for polling', [{ polling: true }], 8, 12],
  ['a wait', [{ runs: 'wait' }], 8, 12],
])('the same step again and again: %s', (_name, calls, nudge, end) => {
  test(`is told at ${nudge}, once, and ends at ${end}`, () => {
    const told = Array.from({ length: end - 1 }, (_, n) => steps(n + 1, ...calls))
      .map(({ reminders }, n) => (reminders.length > 0 ? [n + 1, ...reminders] : []))
      .filter((each) => each.length > 0);
    expect(told).toEqual([[nudge, 'identical_steps']]);
    expect(endAt(steps(end - 1, ...calls))).toBeNull();
    expect(endAt(steps(end, ...calls))).toEqual({
      reason: 'BLOCKED',
      detail: 'no_progress',
      decidedBy: 'runtime',
      signal: { name: 'limit', limit: 'identical_steps', allowed: end, used: end },
      phase: 'tools',
    });
  });
});

describe('what is no loop', () => {
  test.each<[name: string, other: Partial<CallRef>[]]>([
    ['other arguments', [{ argsHash: 'other' }]],
    ['another tool', [{ tool: 'search_text' }]],
    ['one call more', [{}, {}]],
  ])('%s reset the count', (_name, other) => {
    const broken = step(steps(7, {}), ...other);
    expect(broken.repeats.times).toBe(1);
    expect(step(broken, {}).repeats.times).toBe(1);
  });

  // Trap: looking in on a sub-agent each minute is no loop while it works.
  test('a wait whose time was over before what it waits for, however often', () => {
    const look = { runs: 'wait', tool: 'wait_agents' } as const;
    const looked = (state: TurnState, stillRuns: boolean) => {
      const events: TurnEvent[] = [
        { kind: 'sampled', outcome: reply({ calls: [ref(0, look)] }), drained: 0, dice: 0.5, atMs: T0 },
        { kind: 'call_started', ordinal: 0, atMs: T0 },
        { kind: 'call_finished', ordinal: 0, status: 'ok', ...(stillRuns && { stillRuns }), atMs: T0 },
        { kind: 'batch_returned', atMs: T0 },
      ];
      return events.reduce(apply, state);
    };
    const often = Array.from({ length: 20 }).reduce<TurnState>((state) => looked(state, true), turn({ inbox: [] }));
    expect([often.step, often.repeats.times, often.reminders, endAt(often)]).toEqual([20, 0, [], null]);
    const idle = Array.from({ length: 12 }).reduce<TurnState>((state) => looked(state, false), often);
    expect(endAt(idle)).toMatchObject({ detail: 'no_progress' });
  });

  test('something new from a person resets it, also at the last moment', () => {
    const stuck = steps(8, {});
    expect(endAt({ ...stuck, inbox: ['in_2'] })).toBeNull();
    const heard = apply(
      { ...stuck, inbox: ['in_2'] },
      { kind: 'sampled', outcome: reply({ calls: [ref(0)] }), drained: 1, dice: 0.5, atMs: T0 },
    );
    expect(heard.repeats.times).toBe(0);
  });
});

test('the count survives what lies between two steps: failures, nudges, other text', () => {
  const before = steps(3, {});
  const failed = apply(before, {
    kind: 'sampled',
    outcome: { kind: 'stalled', head: 'h5', usage: { ...reply().usage } },
    drained: 0,
    dice: 0.5,
    atMs: T0,
  });
  expect(step(apply(failed, { kind: 'rested', atMs: T0 + 9_000 }), {}).repeats.times).toBe(4);
});

test('a budget that is used up as well comes first', () => {
  const stuck = steps(8, {});
  expect(endAt({ ...stuck, limits: { ...stuck.limits, maxSteps: 8 } })).toMatchObject({ detail: 'max_steps' });
  expect(endOf(stuck)).toBeNull();
});
