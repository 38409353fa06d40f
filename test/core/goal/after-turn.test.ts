import { describe, expect, it, test } from 'vitest';
import { END_DETAILS } from '../../../workflows/core/ends.ts';
import { nextGoalStep } from '../../../workflows/core/goal/goal-step.ts';
import { nameOf } from '../../../workflows/core/goal/moving.ts';
import { after, end, ended, looked, OPENED, quiet, running, turn } from './goal-fixtures.ts';

const MINUTE = 60_000;

describe('what each end of a turn does to an active goal', () => {
  const rows = [
    ['COMPLETED', 'final_answer', 'active'],
    ['COMPLETED', 'refused', 'paused(refusal)'],
    ['COMPLETED', 'todo_open', 'active'],
    ['BLOCKED', 'awaiting_input', 'waiting(answer)'],
    ['BLOCKED', 'external_dependency', 'waiting(answer)'],
    ['BLOCKED', 'awaiting_approval', 'waiting(answer)'],
    ['BLOCKED', 'no_progress', 'paused(no_progress)'],
    ['MAX_TOKENS', 'output_limit', 'active'],
    ['MAX_TOKENS', 'context_limit', 'blocked(context_limit)'],
    ['ABORTED', 'user_cancel', 'paused(user)'],
    ['ABORTED', 'permission_rejected', 'paused(user)'],
    ['ABORTED', 'permission_cancelled', 'paused(user)'],
    ['ABORTED', 'max_steps', 'active'],
    ['ABORTED', 'budget', 'budget_limited(tokens)'],
    ['ABORTED', 'deadline', 'active'],
    ['ABORTED', 'hook_stop', 'paused(user)'],
    ['ABORTED', 'scheduler_cancel', 'cancelled'],
    ['ABORTED', 'parent_cancelled', 'paused(user)'],
    ['ERROR', 'auth', 'paused(infrastructure)'],
    ['ERROR', 'model', 'paused(infrastructure)'],
    ['ERROR', 'provider_unavailable', 'paused(infrastructure)'],
    ['ERROR', 'invalid_request', 'blocked(invalid_request)'],
    ['ERROR', 'context_unusable', 'blocked(context_unusable)'],
    ['ERROR', 'storage', 'paused(infrastructure)'],
    ['ERROR', 'tool_infrastructure', 'paused(infrastructure)'],
    ['ERROR', 'internal', 'blocked(internal)'],
    ['INTERRUPTED', 'terminated', 'paused(user)'],
    ['INTERRUPTED', 'timed_out', 'active'],
    ['INTERRUPTED', 'unknown_outcome', 'blocked(unknown_outcome)'],
    ['INTERRUPTED', 'workspace_lost', 'active'],
    ['INTERRUPTED', 'lost', 'active'],
  ] as const;

  it('knows them all', () => {
    const all = Object.entries(END_DETAILS).flatMap(([reason, details]) =>
      Object.keys(details).map((detail) => `${reason}/${detail}`),
    );
    expect(rows.map(([reason, detail]) => `${reason}/${detail}`)).toEqual(all);
  });

  it.each(rows)('%s/%s → %s', (reason, detail, status) => {
    const state = ended({ end: end(reason, detail), waitsFor: reason === 'BLOCKED' ? { on: 'answer' } : null });
    expect(nameOf(state.status)).toBe(status);
  });

  it('BLOCKED with nothing to wait for is blocked', () => {
    const state = ended({ end: end('BLOCKED', 'external_dependency', 'model') });
    expect(nameOf(state.status)).toBe('blocked(external_dependency)');
  });

  it.each(['max_steps', 'deadline'] as const)('%s is judged three times in a row, then backs off', (detail) => {
    const cut = { end: end('ABORTED', detail) };
    let state = OPENED;
    for (const n of [1, 2, 3]) {
      state = ended(cut, n, running(n, state));
      expect(nextGoalStep(state, 0)).toEqual({ kind: 'check', turn: `ses/${n}` });
      const go = { kind: 'continue', gap: `gap ${n}`, verdict: `v${n}` } as const;
      state = quiet(
        after(
          state,
          { kind: 'checked', outcome: 'none', evidence: `e${n}`, verdict: null },
          { kind: 'judged', verdict: go, usage: { tokens: 1, microUsd: 1 } },
        ),
      );
    }
    state = ended(cut, 4, running(4, state));
    expect(state.status).toMatchObject({ kind: 'paused', by: 'backoff', untilMs: state.atMs + 5 * MINUTE });
  });

  // Others: a passing failure ends the goal for good.
  it('an outage rests 5, 15, 60, and 60 minutes again; a success sets it back', () => {
    const down = { end: end('ERROR', 'provider_unavailable') };
    let state = OPENED;
    const rests: number[] = [];
    for (const n of [1, 2, 3, 4]) {
      state = ended(down, n, running(n, state));
      const step = nextGoalStep(state, state.atMs);
      if (step.kind !== 'await' || step.untilMs === null) throw new Error('it wakes by itself');
      rests.push((step.untilMs - state.atMs) / MINUTE);
      state = quiet(after(state, { kind: 'time', atMs: step.untilMs - 1 }));
      expect(state.status.kind).toBe('paused');
      state = quiet(after(state, { kind: 'time', atMs: step.untilMs }));
    }
    expect(rests).toEqual([5, 15, 60, 60]);
    state = ended({}, 5, running(5, state));
    expect(state.brakes.outages).toBe(0);
  });
});

test('a turn is counted once, whoever tells of it how often', () => {
  const once = after(running(), looked([turn(1)]));
  expect(after(once, looked([turn(1)]), looked([turn(1)]))).toEqual({ ...once, looked: 0 });
  expect(once.spent).toEqual({ turns: 1, tokens: 100, microUsd: 10, runningMs: 1_000 });
});

test('a person’s turn in between costs tokens, is no round, and leaves the queued round as it is', () => {
  const state = after(running(), looked([turn(1, { round: null })]));
  expect(state.spent).toMatchObject({ turns: 0, tokens: 100 });
  expect(state.status).toEqual(running().status);
});

test('a person’s cancel of their own turn pauses the goal, and takes its round out of the queue', () => {
  const state = after(running(), looked([turn(1, { round: null, end: end('ABORTED', 'user_cancel', 'user') })]));
  expect(nameOf(state.status)).toBe('paused(user)');
  expect(state.facts.map((fact) => fact.kind)).toEqual(['withdrawn', 'moved']);
});

test('the answer that it waited for brings a turn, and that is judged', () => {
  const waiting = ended({ end: end('BLOCKED', 'awaiting_input', 'model'), waitsFor: { on: 'answer' } });
  expect(nextGoalStep(waiting, 9e12)).toEqual({ kind: 'await', untilMs: null });
  const state = quiet(after(waiting, looked([turn(2, { round: null })])));
  expect(nextGoalStep(state, 0)).toEqual({ kind: 'check', turn: 'ses/2' });
});
