import { describe, expect, it, test } from 'vitest';
import { END_DETAILS } from '../../../workflows/core/ends.ts';
import { nextGoalStep } from '../../../workflows/core/goal/goal-step.ts';
import { nameOf } from '../../../workflows/core/goal/moving.ts';
import { after, BUDGET, end, ended, looked, NO_COST, OPENED, quiet, running, turn } from './goal-fixtures.ts';

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
    const state = ended({
      end: end(reason, detail),
      waitsFor: reason === 'BLOCKED' ? { on: 'answer', untilMs: 9_000 } : null,
    });
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
    const go = { kind: 'continue', gap: 'more', verdict: 'v' } as const;
    const checked = { kind: 'checked', outcome: 'none', evidence: '', verdict: null } as const;
    expect(after(state, checked, { kind: 'judged', verdict: go, usage: NO_COST }).brakes.outages).toBe(0);
  });
});

test('a turn is counted once, whoever tells of it how often', () => {
  const once = after(running(), looked([turn(1)]));
  expect(after(once, looked([turn(1)]), looked([turn(1)]))).toEqual({ ...once, looked: 0 });
  expect(once.spent).toEqual({ turns: 1, tokens: 100, microUsd: 10, runningMs: 1_000 });
});

test('the rows are the bill: what sub-agents cost later comes on it once, and what they were lent is held back', () => {
  const bill = (tokens: number, held: number) =>
    ({ ...looked([]), bill: { spent: { tokens, microUsd: 5 }, held: { tokens: held, microUsd: 0 } } }) as const;
  const lent = quiet(after(ended({}), { kind: 'gated', answer: 'pass', verdict: null }, bill(300, 1_000)));
  const judging = { kind: 'judged', verdict: { kind: 'unusable' }, usage: { tokens: 7, microUsd: 0 } } as const;
  expect(after(lent, judging).spent.tokens).toBe(307);
  const returned = after(lent, judging, bill(657, 0), bill(657, 0));
  expect([returned.spent.tokens, returned.held.tokens]).toEqual([657, 0]);
  const due = quiet(after(OPENED, bill(300, 1_000)));
  expect(nextGoalStep(due, 0)).toMatchObject({ kind: 'direct', limits: { maxTokens: BUDGET.tokens - 1_300 } });
});

// It ended for good, and what its sub-agents gave back later woke nobody.
test('a turn that is out of budget because sub-agents hold it is gone on with when some comes back', () => {
  const bill = (held: number) => ({ spent: { tokens: 100, microUsd: 0 }, held: { tokens: held, microUsd: 0 } });
  const out = turn(1, { end: end('ABORTED', 'budget'), limit: 'tokens' });
  const lent = quiet(after(running(), { ...looked([out]), bill: bill(500) }));
  expect(nextGoalStep(lent, 0)).toEqual({ kind: 'await', untilMs: 30_000 });
  const again = quiet(after(lent, { kind: 'time', atMs: 30_000 }, { ...looked([]), bill: bill(500) }));
  expect(nextGoalStep(again, 30_000)).toEqual({ kind: 'await', untilMs: 60_000 });
  const back = quiet(after(again, { ...looked([]), bill: bill(499) }));
  expect(nextGoalStep(back, 32_000)).toMatchObject({ kind: 'direct', round: 2 });
  const held = { ...running(), budget: { ...BUDGET, tokens: 100 } };
  expect(nameOf(after(held, { ...looked([out]), bill: bill(500) }).status)).toBe('budget_limited(tokens)');
});

test('a goal that was at rest looks at what was spent meanwhile before its next round', () => {
  const paused = quiet(after(OPENED, { kind: 'commanded', command: { id: 'p', kind: 'pause' } }));
  const resumed = after(paused, { kind: 'commanded', command: { id: 'r', kind: 'resume' } });
  expect(nextGoalStep({ ...resumed, facts: [] }, 0)).toMatchObject({ kind: 'look', sinceTurn: 0 });
});

test('the budget that ended a turn is named, also where it was the agent’s own', () => {
  const state = ended({ end: end('ABORTED', 'budget'), limit: 'usd' });
  expect(nameOf(state.status)).toBe('budget_limited(usd)');
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
  const waiting = ended({ end: end('BLOCKED', 'awaiting_input', 'model'), waitsFor: { on: 'answer', untilMs: 9_000 } });
  expect(nextGoalStep(waiting, 0)).toEqual({ kind: 'await', untilMs: 9_000 });
  // Nobody can give it any more: there is nothing left to wait for.
  expect(after(waiting, { kind: 'time', atMs: 9_000 }).status.kind).toBe('active');
  const state = quiet(after(waiting, looked([turn(2, { round: null })])));
  expect(nextGoalStep(state, 0)).toEqual({ kind: 'check', turn: 'ses/2' });
});
