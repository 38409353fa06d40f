import { describe, expect, it, test } from 'vitest';
import type { JudgeVerdict, ScepticVote } from '../../../workflows/core/goal/goal-event.ts';
import type { GoalState } from '../../../workflows/core/goal/goal-state.ts';
import { nextGoalStep } from '../../../workflows/core/goal/goal-step.ts';
import { nameOf } from '../../../workflows/core/goal/moving.ts';
import { checksMostMs } from '../../../workflows/core/goal/goal-limits.ts';
import { POLICY } from '../../../workflows/core/policy.ts';
import { openGoal } from '../../../workflows/core/goal/open-goal.ts';
import { after, BUDGET, ended, looked, NO_COST, OPENED, quiet, running, turn } from './goal-fixtures.ts';

const checked = (outcome: 'passed' | 'failed' | 'none', evidence = 'same') =>
  ({ kind: 'checked', outcome, evidence, verdict: outcome === 'none' ? null : `checks ${outcome}` }) as const;
const judged = (verdict: JudgeVerdict) => ({ kind: 'judged', verdict, usage: NO_COST }) as const;
const candidate = judged({ kind: 'candidate_complete', verdict: 'done, says the judge' });
const goOn = (gap: string) => judged({ kind: 'continue', gap, verdict: gap });
const doubted = (vote: ScepticVote) => ({ kind: 'doubted', vote, usage: NO_COST }) as const;
const approve = doubted({ kind: 'approve', verdict: 'agreed' });
const refute = (confidence: 'high' | 'low') => doubted({ kind: 'refute', confidence, verdict: `no (${confidence})` });

const doing = ({ status }: GoalState) => (status.kind === 'active' ? status.doing.kind : nameOf(status));

test('checks, judge, sceptic, stop gate: then it is complete', () => {
  let state = ended({});
  const steps: string[] = [];
  for (const event of [
    checked('none'),
    candidate,
    approve,
    { kind: 'gated', answer: 'pass', verdict: null } as const,
  ]) {
    steps.push(nextGoalStep(state, 0).kind);
    state = quiet(after(state, event));
  }
  expect(steps).toEqual(['check', 'judge', 'doubt', 'stopGate']);
  expect(nameOf(state.status)).toBe('complete');
  expect(nextGoalStep(state, 0)).toEqual({ kind: 'finish' });
});

test('a check that passes needs no judge: a model that never says done is done', () => {
  expect(nextGoalStep(quiet(after(ended({}), checked('passed'))), 0)).toEqual({ kind: 'stopGate', turn: 'ses/1' });
});

test('a check that fails is not talked away: neither by the model nor by the judge', () => {
  const state = after(ended({ claim: { kind: 'complete' } }), checked('failed'), candidate);
  expect(doing(state)).toBe('due');
});

test('the stop gate’s objection is the next directive’s', () => {
  const state = after(ended({}), checked('passed'), { kind: 'gated', answer: 'block', verdict: 'not yet' });
  expect([doing(state), state.verdict]).toEqual(['due', 'not yet']);
});

describe('a judge without a verdict that fits', () => {
  it('is asked twice, then the goal rests; it is never complete by that', () => {
    const unusable = judged({ kind: 'unusable' });
    const once = after(ended({}), checked('none'), unusable);
    expect(nextGoalStep(quiet(once), 0)).toMatchObject({ kind: 'judge', turn: 'ses/1', failures: 1 });
    expect(nameOf(after(once, unusable).status)).toBe('paused(infrastructure)');
  });

  // Each turn in between succeeds: a judge that never answers must not cost a round every 5 minutes.
  it('rests longer each time, though the turns themselves succeed', () => {
    const unusable = judged({ kind: 'unusable' });
    let state = OPENED;
    const rests: number[] = [];
    for (const n of [1, 2, 3, 4]) {
      state = quiet(after(ended({}, n, running(n, state)), checked('none', `e${n}`), unusable, unusable));
      const step = nextGoalStep(state, state.atMs);
      if (step.kind !== 'await' || step.untilMs === null) throw new Error('it wakes by itself');
      rests.push((step.untilMs - state.atMs) / 60_000);
      state = quiet(after(state, { kind: 'time', atMs: step.untilMs }));
    }
    expect(rests).toEqual([5, 15, 60, 60]);
  });

  it('holds for sceptics as well', () => {
    const unusable = doubted({ kind: 'unusable' });
    const state = after(ended({}), checked('none'), candidate, unusable, unusable);
    expect(nameOf(state.status)).toBe('paused(infrastructure)');
  });
});

describe('sceptics', () => {
  const of = (sceptics: number) => quiet(openGoal({ budget: BUDGET, sceptics, atMs: 0 }));
  it.each([
    [1, [approve], 'judging'],
    [1, [refute('low')], 'due'],
    [3, [refute('high')], 'due'],
    [3, [approve, refute('high')], 'due'],
    [3, [approve, refute('low'), approve], 'judging'],
    [3, [approve, refute('low'), refute('low')], 'due'],
    [4, [approve, approve, refute('low'), refute('low')], 'due'],
  ] as const)('%i of them: %j', (sceptics, votes, comesTo) => {
    const state = after(ended({}, 1, running(1, of(sceptics))), checked('none'), candidate, ...votes);
    expect(doing(state)).toBe(comesTo);
    if (comesTo === 'judging') expect(nextGoalStep(quiet(state), 0).kind).toBe('stopGate');
  });
});

function rounds(count: number, each: (n: number) => Parameters<typeof after>[1][], same = false): GoalState {
  let state = OPENED;
  for (let n = 1; n <= count; n += 1) {
    if (state.status.kind !== 'active') return state;
    state = ended(same ? { reply: 'same' } : {}, n, running(n, state));
    state = quiet(after(state, ...each(n)));
  }
  return state;
}

test('the same gap twice in a row pauses it', () => {
  expect(nameOf(rounds(1, () => [checked('none'), goOn('tests fail')]).status)).toBe('active');
  const state = rounds(2, (n) => [checked('none', `e${n}`), goOn('tests fail')]);
  expect(nameOf(state.status)).toBe('paused(no_progress)');
});

test('the same blocker three times blocks it; another one counts anew', () => {
  const blocker = (name: string) => judged({ kind: 'blocked', blocker: name, verdict: name });
  const say = (names: readonly string[]) =>
    rounds(names.length, (n) => [checked('none', `e${n}`), blocker(names[n - 1] ?? '')]);
  expect(nameOf(say(['a', 'a']).status)).toBe('active');
  expect(nameOf(say(['a', 'a', 'b', 'a']).status)).toBe('active');
  expect(nameOf(say(['a', 'a', 'a']).status)).toBe('blocked(same_blocker)');
});

// Others ran for thousands of identical turns.
test('three turns that say the same, act on nothing and find the same pause it; the gap doubles until then', () => {
  const gaps: number[] = [];
  const state = rounds(
    5,
    (n) => {
      return [checked('failed'), goOn(`gap ${n}`)];
    },
    true,
  );
  expect([state.rounds, nameOf(state.status)]).toEqual([3, 'paused(no_progress)']);
  let slow = OPENED;
  for (let n = 1; n <= 2; n += 1) {
    slow = quiet(after(ended({ reply: 'same' }, n, running(n, slow)), checked('failed'), goOn(`gap ${n}`)));
    const step = nextGoalStep(slow, slow.atMs);
    if (step.kind === 'await' && step.untilMs !== null) gaps.push(step.untilMs - slow.atMs);
  }
  expect(gaps).toEqual([2_000, 4_000]);
});

test('a claim to wait is taken when the checks do not say done', () => {
  const claim = { kind: 'waiting', awaited: { on: 'time', untilMs: 5_000 } } as const;
  const state = quiet(after(ended({ claim }), checked('none')));
  expect(nextGoalStep(state, 0)).toEqual({ kind: 'await', untilMs: 5_000 });
  expect(doing(quiet(after(state, { kind: 'time', atMs: 5_000 })))).toBe('due');
  expect(nextGoalStep(quiet(after(ended({ claim }), checked('passed'))), 0).kind).toBe('stopGate');
});

test('no judge is asked once its money is spent', () => {
  const state = after({ ...ended({}), budget: { ...BUDGET, tokens: 100 } }, checked('none'));
  expect(nameOf(state.status)).toBe('budget_limited(tokens)');
});

test.each([
  ['a judge', [] as const, (short: JudgeVerdict & { kind: 'unaffordable' }) => judged(short)],
  ['a sceptic', [candidate] as const, (short: ScepticVote & { kind: 'unaffordable' }) => doubted(short)],
])('%s whose worst case is not left is not asked: the goal waits for a raised budget', (_, before, answer) => {
  const short = { kind: 'unaffordable', limit: 'tokens', needed: 900 } as const;
  const state = after({ ...ended({}), budget: { ...BUDGET, tokens: 500 } }, checked('none'), ...before);
  expect(nextGoalStep(quiet(state), 0)).toMatchObject({ left: { maxTokens: 400, maxMicroUsd: null } });
  const limited = after(state, answer(short));
  expect(nameOf(limited.status)).toBe('budget_limited(tokens)');
  const cause = { name: 'reserve', limit: 'tokens', needed: 900, left: 400 };
  expect(limited.facts).toMatchObject([{ kind: 'moved', cause, decidedBy: 'runtime' }]);
  const raise = { id: 'e', kind: 'edit', budget: { tokens: 5_000 }, wish: 'same' } as const;
  expect(nameOf(after(limited, { kind: 'commanded', command: raise }).status)).toBe('active');
});

describe('while sub-agents hold what it lacks', () => {
  const short = { kind: 'unaffordable', limit: 'tokens', needed: 900 } as const;
  const bill = (tokens: number, held: number) => ({
    ...looked([]),
    bill: { spent: { tokens, microUsd: 0 }, held: { tokens: held, microUsd: 0 } },
  });
  const poor = () => quiet(after({ ...ended({}), budget: { ...BUDGET, tokens: 1_000 } }, bill(100, 800)));
  const later = (state: GoalState, back: ReturnType<typeof bill>) =>
    after(quiet(after(state, { kind: 'time', atMs: state.atMs + 30_000 })), back);

  it('a judge that does not fit is asked again when some comes back', () => {
    const lent = quiet(after(poor(), checked('none'), judged(short)));
    expect(nextGoalStep(lent, 0)).toEqual({ kind: 'await', untilMs: 30_000 });
    expect(nextGoalStep(after(lent, { kind: 'time', atMs: 30_000 }), 30_000).kind).toBe('look');
    const still = quiet(later(lent, bill(100, 800)));
    expect(nextGoalStep(still, 30_000)).toEqual({ kind: 'await', untilMs: 60_000 });
    const back = quiet(later(still, bill(150, 0)));
    const left = { maxTokens: 850, maxMicroUsd: null };
    expect(nextGoalStep(back, 60_000)).toEqual({ kind: 'judge', turn: 'ses/1', failures: 0, left });
    expect([back.rounds, back.brakes.idleTurns]).toEqual([1, 1]);
    expect(nameOf(after(back, judged(short)).status)).toBe('budget_limited(tokens)');
  });

  it('so does a sceptic, without the votes before it being asked for again', () => {
    const state = { ...poor(), sceptics: 3 };
    const lent = quiet(after(state, checked('none'), candidate, approve, doubted(short)));
    expect(doing(lent)).toBe('lent');
    expect(nextGoalStep(quiet(later(lent, bill(100, 100))), 30_000)).toMatchObject({ kind: 'doubt', sceptic: 2 });
  });

  it('a pause keeps the turn for later', () => {
    const command = (kind: 'pause' | 'resume') => ({ kind: 'commanded', command: { id: kind, kind } }) as const;
    const state = after(poor(), checked('none'), judged(short), command('pause'), command('resume'));
    expect(nextGoalStep(quiet(state), 0)).toMatchObject({ kind: 'judge', turn: 'ses/1' });
  });

  it('a raised budget of that kind goes on at once', () => {
    const raise = (id: string, budget: object) =>
      ({ kind: 'commanded', command: { id, kind: 'edit', budget, wish: 'same' } }) as const;
    const lent = after(poor(), checked('none'), judged(short));
    expect(doing(after(lent, raise('a', { turns: 99 })))).toBe('lent');
    expect(doing(after(lent, raise('b', { tokens: 9_999 })))).toBe('judging');
  });
});

describe('a pause cuts judging', () => {
  const command = (kind: 'pause' | 'resume') => ({ kind: 'commanded', command: { id: kind, kind } }) as const;

  it.each([
    ['check', []],
    ['judge', [checked('none')]],
    ['doubt', [checked('none'), candidate]],
    ['stopGate', [checked('passed')]],
  ] as const)('at the %s, where a resume goes on with it', (kind, before) => {
    const paused = quiet(after(ended({}), ...before, command('pause')));
    expect([nameOf(paused.status), nextGoalStep(paused, 0).kind]).toEqual(['paused(user)', 'await']);
    const resumed = after(paused, command('resume'));
    expect(nextGoalStep(quiet(resumed), 0)).toMatchObject({ kind, turn: 'ses/1' });
  });

  it('and a newer turn stands for the one that was cut', () => {
    const paused = after(quiet(after(ended({}), command('pause'))), looked([turn(2, { round: null })]));
    expect(doing(after(paused, command('resume')))).toBe('due');
  });

  // A verdict that came in the moment of the pause is told again, and was paid once.
  it('and what is asked again is on the bill, which alone counts then', () => {
    const resumed = quiet(after(ended({}), checked('none'), command('pause'), command('resume')));
    const told = after(resumed, { ...goOn('a gap'), usage: { tokens: 7, microUsd: 1 } });
    expect(told.spent).toEqual(resumed.spent);
    expect(nextGoalStep(told, 9e12).kind).toBe('look');
  });
});

test('all checks fit into the time that they have', () => {
  const { most, mostLimitS } = POLICY.goal.checks;
  expect(checksMostMs()).toBeGreaterThan(most * mostLimitS * 1_000);
});

// Waiting for what is past would set the brakes back each time.
test.each([
  ['claim', { on: 'time', untilMs: 0 }],
  ['judge', { on: 'time', untilMs: 0 }],
  ['claim', { on: 'event', event: 'ci', untilMs: 0 }],
  ['judge', { on: 'event', event: 'ci', untilMs: 0 }],
] as const)('a %s that names nothing to wait for (%j) goes on after the gap, and the brakes hold', (who, awaited) => {
  const wait = { kind: 'waiting', awaited } as const;
  const claim = who === 'claim' ? { claim: wait } : {};
  const said = who === 'claim' ? [] : [judged({ ...wait, verdict: 'v' })];
  let state = OPENED;
  const gaps: unknown[] = [];
  for (let n = 1; n <= 3; n += 1) {
    state = quiet(after(ended({ reply: 'same', ...claim }, n, running(n, state)), checked('none'), ...said));
    gaps.push(state.status.kind === 'active' ? nextGoalStep(state, state.atMs) : nameOf(state.status));
  }
  expect(gaps).toEqual([{ kind: 'await', untilMs: 2_000 }, { kind: 'await', untilMs: 4_000 }, 'paused(no_progress)']);
});

test('what comes late means nothing, but what it cost', () => {
  const paused = after(ended({}), checked('none'), { kind: 'commanded', command: { id: 'c', kind: 'pause' } });
  const late = after(paused, { ...candidate, usage: { tokens: 7, microUsd: 1 } });
  expect(late).toEqual({ ...paused, spent: { ...paused.spent, tokens: 107, microUsd: 11 } });
});

test('where no machine has the files, the goal rests as on any outage', () => {
  const away = after(ended({}), { kind: 'checked', outcome: 'away', evidence: '', verdict: null });
  expect(nameOf(away.status)).toBe('paused(infrastructure)');
  const gate = after(ended({}), checked('passed'), { kind: 'gated', answer: 'away', verdict: null });
  expect(nameOf(gate.status)).toBe('paused(infrastructure)');
});

test('what made it complete is told: its checks, or sceptics', () => {
  const pass = { kind: 'gated', answer: 'pass', verdict: null } as const;
  const causes = [
    after(ended({}), checked('passed'), pass),
    after(ended({}), checked('none'), candidate, approve, pass),
  ].map(({ facts }) => facts.map((fact) => (fact.kind === 'moved' ? [fact.cause.name, fact.decidedBy] : [])));
  expect(causes).toEqual([[['checks', 'runtime']], [['sceptics', 'model']]]);
});
