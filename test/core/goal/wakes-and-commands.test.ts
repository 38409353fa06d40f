import { describe, expect, it, test } from 'vitest';
import type { GoalState, GoalStatus } from '../../../workflows/core/goal/goal-state.ts';
import { answerTo, refusalOf } from '../../../workflows/core/goal/commands.ts';
import { nextGoalStep } from '../../../workflows/core/goal/goal-step.ts';
import { nameOf } from '../../../workflows/core/goal/moving.ts';
import { after, BUDGET, end, ended, looked, OPENED, quiet, running, turn } from './goal-fixtures.ts';

const at = (status: GoalStatus): GoalState => ({ ...OPENED, status });
const wake = (...ids: readonly string[]) => looked([], ids);
const awaiting = (event: string) => ({ on: 'event', event, untilMs: null }) as const;
/** Events by name, as wakes `w0`, `w1` and so on. */
const came = (...events: readonly string[]) => cameTo('goal', ...events);
function cameTo(to: 'goal' | 'session', ...events: readonly string[]) {
  const wakes = events.map((event, n) => ({ id: `w${n}`, event, to }));
  return { kind: 'looked', upTo: 0, turns: [], wakes, withdrawn: null } as const;
}
const told = ({ facts }: GoalState) =>
  facts.flatMap((fact) => (fact.kind === 'wake_settled' ? [`${fact.wake} ${fact.outcome}: ${fact.why}`] : []));
const command = (kind: 'pause' | 'resume' | 'cancel', id: string = kind) =>
  ({ kind: 'commanded', command: { id, kind } }) as const;

describe('a wake', () => {
  const resting: readonly GoalStatus[] = [
    { kind: 'waiting', awaited: { on: 'time', untilMs: 9_000 } },
    { kind: 'waiting', awaited: { on: 'event', event: 'ci', untilMs: null } },
    { kind: 'waiting', awaited: { on: 'answer', untilMs: 9_000 } },
    { kind: 'blocked', on: 'same_blocker' },
    { kind: 'paused', by: 'infrastructure', untilMs: 9_000 },
    { kind: 'paused', by: 'backoff', untilMs: 9_000 },
  ];
  it.each(resting)('activates %j', (status) => {
    const state = after(at(status), wake('w'));
    expect([nameOf(state.status), told(state)]).toEqual(['active', [`w fired: ${nameOf(status)}`]]);
  });

  const deaf: readonly GoalStatus[] = [
    { kind: 'paused', by: 'user' },
    { kind: 'paused', by: 'refusal' },
    { kind: 'paused', by: 'no_progress' },
    { kind: 'budget_limited', limit: 'turns' },
    { kind: 'complete' },
    { kind: 'cancelled' },
  ];
  it.each(deaf)('is only recorded on %j, with the reason', (status) => {
    const state = after(at(status), wake('w'));
    expect([state.status, told(state)]).toEqual([status, [`w recorded: ${nameOf(status)}`]]);
  });

  // Others lost a wake that fell due while a turn ran.
  it('that falls due while a turn runs is remembered; what comes after it collapses into it', () => {
    const busy = after(running(), wake('w1', 'w2', 'w3'));
    expect(told(busy)).toEqual(['w2 superseded: w1', 'w3 superseded: w1']);
    const blocked = { end: end('MAX_TOKENS', 'context_limit') };
    const state = after(quiet(busy), looked([turn(1, blocked)]));
    expect([nameOf(state.status), told(state)]).toEqual(['active', ['w1 fired: blocked(context_limit)']]);
  });

  // A look that began before a pause brings the wake again that the pause has settled.
  it('that a look brings twice is settled once', () => {
    const paused = after(running(), wake('w1'), command('pause'), wake('w1'));
    expect(told(paused)).toEqual(['w1 recorded: paused(user)']);
    const busy = after(running(), wake('w1'), wake('w1'));
    expect([busy.pendingWakes.map(({ id }) => id), told(busy)]).toEqual([['w1'], []]);
  });

  it('that was remembered is recorded where the goal ends meanwhile', () => {
    const state = after(running(), wake('w1'), command('cancel'));
    expect([nameOf(state.status), told(state)]).toEqual(['cancelled', ['w1 recorded: cancelled']]);
  });

  // A wake for one event, remembered, ended a wait for another; one for the right event was swallowed by it.
  it('that was remembered ends a wait for its own event only; the first of each name is remembered', () => {
    const claim = { kind: 'waiting', awaited: { on: 'event', event: 'ci', untilMs: null } } as const;
    const named = (id: string, event: string) => ({ id, event, to: 'goal' }) as const;
    const wakes = [named('w1', 'deploy'), named('w2', 'ci'), named('w3', 'ci')];
    const busy = after(running(), looked([], wakes));
    expect(told(busy)).toEqual(['w3 superseded: w2']);
    const waits = after(quiet(busy), looked([turn(1, { claim })]), {
      kind: 'checked',
      outcome: 'none',
      evidence: '',
      verdict: null,
    });
    expect(told(waits)).toEqual(['w1 recorded: another_event', 'w2 fired: waiting(event)']);
    const later = after(running(), looked([], [named('w1', 'ci'), named('w2', 'deploy'), 'w3']));
    const blocked = after(quiet(later), looked([turn(1, { end: end('MAX_TOKENS', 'context_limit') })]));
    expect(told(blocked)).toEqual(['w1 fired: blocked(context_limit)', 'w3 superseded: w1']);
    expect(blocked.pendingWakes).toEqual([named('w2', 'deploy')]);
  });

  it('by another event leaves the wait as it is', () => {
    const status = { kind: 'waiting', awaited: { on: 'event', event: 'ci', untilMs: null } } as const;
    const state = after(at(status), {
      kind: 'looked',
      upTo: 0,
      turns: [],
      wakes: [{ id: 'w', event: 'deploy', to: 'goal' }],
      withdrawn: null,
    });
    expect([state.status, told(state)]).toEqual([status, ['w recorded: another_event']]);
  });

  it('that is remembered is copied to the store, so that nobody tells of it again; twenty names are enough', () => {
    const busy = after(running(), came(...Array.from({ length: 21 }, (_, n) => `e${n}`)));
    expect(busy.facts.filter(({ kind }) => kind === 'wake_remembered').length).toBe(20);
    expect(told(busy)).toEqual(['w20 superseded: w0']);
  });
});

// One that could wake nothing stood for one that would have.
describe('where as many events are remembered as may be', () => {
  const full = quiet(after(running(), cameTo('session', ...Array.from({ length: 20 }, (_, n) => `e${n}`))));
  const blockedNow = looked([turn(1, { end: end('MAX_TOKENS', 'context_limit') })]);

  it.each([
    ['without a name', null],
    ['with a name of its own', 'ci'],
  ])('a wake %s is remembered, and fires', (_, event) => {
    const busy = quiet(after(full, looked([], [{ id: 'w', event, to: 'goal' }])));
    const fired = after(busy, blockedNow);
    expect([nameOf(fired.status), told(fired).at(-1)]).toEqual(['active', 'w fired: blocked(context_limit)']);
  });

  it('one event more is not', () => {
    const busy = after(full, looked([], [{ id: 'w', event: 'more', to: 'session' }]));
    expect(told(busy)).toEqual(['w superseded: w0']);
  });
});

test('a wake that is remembered outlasts rounds that go on, and fires once, at the next rest', () => {
  const busy = quiet(after(running(), wake('w')));
  const second = running(2, quiet(after(busy, looked([turn(1, { end: end('ABORTED', 'lost') })]))));
  expect(second.pendingWakes.map(({ id }) => id)).toEqual(['w']);
  const context = { end: end('MAX_TOKENS', 'context_limit') };
  const fired = after(second, looked([turn(2, context)], ['w']));
  expect([told(fired), fired.pendingWakes]).toEqual([['w fired: blocked(context_limit)'], []]);
  const third = after(running(3, quiet(fired)), looked([turn(3, context)]));
  expect(nameOf(third.status)).toBe('blocked(context_limit)');
});

// The session may have another goal by then.
test('what comes after the goal’s end is not on its bill', () => {
  const over = quiet(after(ended({}), command('cancel')));
  const late = after(over, looked([turn(2), turn(3)], ['w']));
  expect(late.spent).toEqual(over.spent);
  expect([late.seenTurn?.n, told(late)]).toEqual([3, ['w recorded: cancelled']]);
});

describe('an event that was reported to the session', () => {
  const reported = (event: string) => cameTo('session', event);

  it('wakes a goal that waits for it', () => {
    const state = after(at({ kind: 'waiting', awaited: awaiting('ci') }), reported('ci'));
    expect([nameOf(state.status), told(state)]).toEqual(['active', ['w0 fired: waiting(event)']]);
  });

  it.each<[GoalStatus, string]>([
    [{ kind: 'waiting', awaited: awaiting('deploy') }, 'another_event'],
    [{ kind: 'waiting', awaited: { on: 'time', untilMs: 9_000 } }, 'another_event'],
    [{ kind: 'blocked', on: 'same_blocker' }, 'blocked(same_blocker)'],
    [{ kind: 'paused', by: 'infrastructure', untilMs: 9_000 }, 'paused(infrastructure)'],
  ])('is nothing to %j', (status, why) => {
    const state = after(at(status), reported('ci'));
    expect([state.status, told(state)]).toEqual([status, [`w0 recorded: ${why}`]]);
  });
});

describe('an event that a call of the session has taken', () => {
  const ci = { on: 'event', event: 'ci', untilMs: null } as const;
  const waits = (from: GoalState, taken: readonly string[]) =>
    after(
      from,
      { ...looked([turn(1, { claim: { kind: 'waiting', awaited: ci } })]), taken },
      { kind: 'checked', outcome: 'none', evidence: '', verdict: null },
    );

  it('does not end a wait for the next one', () => {
    const state = waits(quiet(after(running(), cameTo('session', 'ci'))), ['w0']);
    expect([nameOf(state.status), told(state)]).toEqual(['waiting(event)', ['w0 superseded: taken_by_call']]);
    expect(state.pendingWakes).toEqual([]);
  });

  it('is settled once, also where a look brings it for the first time, or once more', () => {
    const both = { ...cameTo('session', 'ci'), taken: ['w0'] };
    const state = after(running(), both, both);
    expect([told(state), state.pendingWakes]).toEqual([['w0 superseded: taken_by_call'], []]);
  });
});

describe('commands', () => {
  it('pause stops the next round, resume begins it with fresh brakes and the money that is left', () => {
    const spent = ended({ end: end('ABORTED', 'lost') });
    const paused = quiet(after(spent, command('pause')));
    expect(nextGoalStep(paused, 9e12)).toEqual({ kind: 'await', untilMs: null });
    const resumed = quiet(
      after({ ...paused, brakes: { ...paused.brakes, idleTurns: 2, outages: 2 } }, command('resume')),
    );
    expect([resumed.brakes.idleTurns, resumed.brakes.outages, resumed.spent]).toEqual([0, 0, spent.spent]);
    expect(nextGoalStep(resumed, resumed.atMs)).toMatchObject({ kind: 'direct', round: 2 });
  });

  it('the same one again changes nothing', () => {
    const paused = quiet(after(OPENED, command('pause')));
    const resumed = after(paused, command('resume'));
    expect(after(resumed, command('pause'))).toEqual(resumed);
  });

  it('cancel takes the running turn with it, and is final', () => {
    const state = after(running(), command('cancel'));
    expect(state.facts.map((fact) => fact.kind)).toEqual(['turn_cancelled', 'withdrawn', 'moved']);
    expect(after(state, command('resume'), wake('w')).status).toEqual({ kind: 'cancelled' });
    expect(refusalOf(state, { id: 'x', kind: 'resume' })).toBe('goal.final');
    expect(refusalOf(state, { id: 'cancel', kind: 'cancel' })).toBeNull();
  });

  // Nobody counted what such a round went on to spend.
  it('cancel after a pause takes the round with it that still runs', () => {
    const state = after(running(3), command('pause'), command('cancel'));
    expect(state.facts).toContainEqual(expect.objectContaining({ kind: 'turn_cancelled', command: 'cancel' }));
    expect(nameOf(state.status)).toBe('cancelled');
  });

  it('a raised budget lets a limited goal go on; one that is still too small does not', () => {
    const limited = quiet(after({ ...OPENED, budget: { ...BUDGET, turns: 0 } }, { kind: 'limited' }));
    expect(nameOf(limited.status)).toBe('budget_limited(turns)');
    expect(after(limited, command('resume')).status.kind).toBe('budget_limited');
    const raise = (turns: number, id: string) =>
      ({ kind: 'commanded', command: { id, kind: 'edit', budget: { turns }, wish: 'same' } }) as const;
    expect(after(limited, raise(0, 'a')).status.kind).toBe('budget_limited');
    expect(after(limited, raise(1, 'b')).status.kind).toBe('active');
  });

  it.each([
    [{}, 'budget_limited(tokens)'],
    [{ turns: 99 }, 'budget_limited(tokens)'],
    [{ tokens: BUDGET.tokens }, 'budget_limited(tokens)'],
    [{ tokens: BUDGET.tokens + 1 }, 'active'],
  ])('of edits only one that raises what was lacking lets it go on, though some is left: %j', (budget, comesTo) => {
    const limited = at({ kind: 'budget_limited', limit: 'tokens' });
    const state = after(limited, { kind: 'commanded', command: { id: 'e', kind: 'edit', budget, wish: 'changed' } });
    expect(nameOf(state.status)).toBe(comesTo);
  });

  it('of two budgets that are used up each is to be raised, in any order', () => {
    const both = {
      ...at({ kind: 'budget_limited', limit: 'tokens' } as const),
      budget: { ...BUDGET, tokens: 0, turns: 0 },
    };
    const raise = (budget: object) =>
      ({ kind: 'commanded', command: { id: JSON.stringify(budget), kind: 'edit', budget, wish: 'same' } }) as const;
    const [tokens, turns] = [raise({ tokens: 9 }), raise({ turns: 9 })];
    expect([tokens, turns].map((each) => nameOf(after(both, each).status))).toEqual([
      'budget_limited(turns)',
      'budget_limited(tokens)',
    ]);
    expect(nameOf(after(both, tokens, turns).status)).toBe('active');
    expect(nameOf(after(both, turns, tokens).status)).toBe('active');
  });

  it('a new objective is told to the store', () => {
    const state = after(OPENED, {
      kind: 'commanded',
      command: { id: 'e', kind: 'edit', budget: {}, wish: 'changed' },
    });
    expect(state.facts).toMatchObject([{ kind: 'edited', edit: 'e' }]);
  });
});

test('a busy session is left to its people: no directive, until a turn ends or it is time to look again', () => {
  const busy = after(OPENED, { kind: 'directed', round: 1, outcome: 'busy' });
  expect(nextGoalStep(busy, 0)).toEqual({ kind: 'await', untilMs: 30_000 });
  const again = after(busy, { kind: 'time', atMs: 30_000 });
  expect(nextGoalStep(again, 30_000)).toMatchObject({ kind: 'look' });
  expect(nextGoalStep(quiet(again), 30_000)).toMatchObject({ kind: 'direct', round: 1, afterTurn: 0 });
});

test('who takes the directive out of the queue pauses the goal', () => {
  const gone = { kind: 'looked', upTo: 0, turns: [], wakes: [], withdrawn: 1 } as const;
  expect(nameOf(after(running(1), gone).status)).toBe('paused(user)');
  expect(nameOf(after(running(2, quiet(ended({}))), { ...gone, withdrawn: 1 }).status)).toBe('active');
});

// A goal that judged again in a second life ended beside a round of its first one.
test('a round that the engine forgot is found in the store: it runs, or is taken back', () => {
  const found = { ...looked([]), begun: 3 };
  const active = after(ended({}), found);
  expect([active.rounds, active.status]).toEqual([3, { kind: 'active', doing: { kind: 'running', round: 3 } }]);
  const paused = after(quiet(after(OPENED, command('pause'))), found);
  expect([paused.rounds, paused.facts.map((fact) => fact.kind)]).toEqual([3, ['withdrawn']]);
});

test('a command is answered with the status that it has brought about, also later', () => {
  const state = after(OPENED, command('pause'), command('resume'));
  expect([answerTo(state, 'pause'), answerTo(state, 'resume'), answerTo(state, 'x')]).toEqual([
    'paused(user)',
    'active',
    null,
  ]);
});

test('a pause that comes while a directive is being queued takes it back', () => {
  const state = after(OPENED, command('pause'), { kind: 'directed', round: 1, outcome: 'queued' });
  expect([nameOf(state.status), state.facts.map((fact) => fact.kind)]).toEqual([
    'paused(user)',
    ['moved', 'withdrawn'],
  ]);
});

test('what is settled is told outside before anything else is done, and told once', () => {
  const state = after(OPENED, command('pause'));
  expect(nextGoalStep(state, 0)).toEqual({ kind: 'record', facts: state.facts });
  const last = state.facts[state.facts.length - 1]?.n ?? 0;
  const late = after(state, command('resume'), { kind: 'recorded', upTo: last });
  expect(late.facts.map(({ n }) => n)).toEqual([last + 1]);
});
