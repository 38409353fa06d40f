import { describe, expect, test } from 'vitest';
import { apply } from '../../workflows/core/apply.ts';
import { contractMark } from '../../workflows/core/ending-checks/contract.ts';
import { answered } from '../../workflows/core/ending-checks/structured-output.ts';
import { nextStep } from '../../workflows/core/next-step.ts';
import type { Reply } from '../../workflows/core/sample-outcome.ts';
import type { TurnEvent } from '../../workflows/core/turn-event.ts';
import type { TurnRules } from '../../workflows/core/turn-rules.ts';
import type { TurnState } from '../../workflows/core/turn-state.ts';
import { CANCELLED, COMPLETED, endOf, frozen, ref, reply, T0, turn, USAGE } from './fixtures.ts';

const after = (state: TurnState, change: Partial<Reply> = {}, atMs = T0) =>
  frozen(apply(state, { kind: 'sampled', outcome: reply(change), drained: 0, dice: 0.5, atMs }));
const rested = (state: TurnState) =>
  frozen(apply(state, { kind: 'rested', atMs: state.phase.kind === 'resting' ? state.phase.untilMs : T0 }));
const quiet = (rules: Partial<TurnRules> = {}, change: Parameters<typeof turn>[0] = {}) =>
  turn({ inbox: [], rules, ...change });
const verdict = (kind: 'valid' | 'invalid' | 'cut', results = 0): Partial<Reply> => ({
  structured: { verdict: kind, results },
});

/** A batch of one call of this tool comes back. */
function afterCall(state: TurnState, tool: string, status: 'ok' | 'error'): TurnState {
  const events: TurnEvent[] = [
    { kind: 'call_started', ordinal: 0, atMs: T0 },
    { kind: 'call_finished', ordinal: 0, status, atMs: T0 },
    { kind: 'batch_returned', atMs: T0 },
  ];
  return frozen(events.reduce(apply, after(state, { calls: [ref(0, { tool })] })));
}

describe('structured output', () => {
  const asked = quiet({ schema: 'asked' });

  test('valid: the turn ends on it, and the end names the message that holds it', () => {
    const ended = after(asked, { ...verdict('valid', 1), finish: 'tool_calls' });
    expect(endOf(ended)).toEqual(COMPLETED);
    expect(ended.unappendedResults).toBe(1);
    expect(answered(ended, COMPLETED)).toEqual({ kind: 'valid', message: 'h1' });
  });

  test('three tries are shared, however the answer came; then COMPLETED with the fault', () => {
    const tries = [verdict('invalid', 1), verdict('invalid'), verdict('invalid', 2), verdict('invalid')];
    const states = tries.reduce<TurnState[]>((all, each) => [...all, after(all.at(-1)!, each)], [asked]);
    expect(states.map(({ transition, reminders, answer }) => [transition, reminders, answer.retries])).toEqual([
      ['opened', [], 0],
      // The call's own result tells the faults.
      ['structured_retry', [], 1],
      ['structured_retry', ['structured_output'], 2],
      ['structured_retry', [], 3],
      ['structured_retry', [], 3],
    ]);
    expect(endOf(states[4]!)).toEqual(COMPLETED);
    expect(answered(states[4]!, COMPLETED)).toEqual({ kind: 'fault', fault: 'invalid' });
  });

  test('cut: bounded by its own budget, told once, and none of the three tries is spent', () => {
    const first = quiet({ schema: 'asked' }, { limits: { raisedOutputTokens: 1 } });
    const cut = { ...verdict('cut'), finish: 'length' } as const;
    const states = [1, 2, 3, 4].reduce<TurnState[]>((all) => [...all, after(all.at(-1)!, cut)], [first]);
    expect(states.map(({ transition, reminders, resample }) => [transition, reminders, resample])).toEqual([
      ['opened', [], 0],
      ['answer_cut', ['answer_cut'], 1],
      ['answer_cut', [], 2],
      ['answer_cut', [], 3],
      ['answer_cut', [], 3],
    ]);
    expect(answered(states[4]!, endOf(states[4]!)!)).toEqual({ kind: 'fault', fault: 'cut' });
    expect(states[4]!.answer.retries).toBe(0);
  });

  test('a cut answer gets the raised cap first', () => {
    expect(after(asked, { ...verdict('cut'), finish: 'length' })).toMatchObject({ transition: 'output_cap_raised' });
  });

  test.each<[name: string, state: TurnState, expected: unknown]>([
    ['refused', after(asked, { finish: 'content_filter' }), { kind: 'fault', fault: 'refused' }],
    [
      'silent to the end',
      after(
        turn({
          inbox: [],
          rules: { schema: 'asked' },
          follows: 'results',
          tries: { empty: 2, emptyNudges: 1 },
          answer: { schema: 'asks', retries: 3, message: null, fault: null },
        }),
        { empty: true, ...verdict('invalid') },
      ),
      { kind: 'fault', fault: 'missing' },
    ],
    ['not asked for', after(quiet()), null],
  ])('%s', (_name, state, expected) => {
    expect(answered(state, endOf(state)!)).toEqual(expected);
  });

  test('an end that is none of the model’s has no fault, and keeps an answer that came before', () => {
    expect(answered(asked, CANCELLED)).toBeNull();
    const held = { ...asked, answer: { ...asked.answer, message: 'h7' } };
    expect(answered(held, CANCELLED)).toEqual({ kind: 'valid', message: 'h7' });
  });
});

describe('the completion contract', () => {
  const contract = { tools: ['push', 'report'], maxRetries: 3, baseMs: 1_000, maxMs: 3_000 };
  const bound = quiet({ contract });

  test('reminds, rests longer each time, reruns; then the answer stands, marked as unmet', () => {
    const seen: unknown[] = [];
    let state = bound;
    while (state.phase.kind !== 'ending') {
      state = after(state);
      if (state.phase.kind !== 'resting') break;
      seen.push([state.phase.untilMs - state.atMs, state.phase.cause, state.reminders]);
      state = rested(state);
      expect(state.transition).toBe('contract_rerun');
    }
    expect(seen).toEqual([
      [1_000, 'contract', ['contract']],
      [2_000, 'contract', ['contract']],
      [3_000, 'contract', ['contract']],
    ]);
    expect(endOf(state)).toEqual(COMPLETED);
    expect(contractMark(state)).toBe('unmet');
  });

  test('a tool must have succeeded, in this turn', () => {
    const tried = afterCall(afterCall(bound, 'push', 'error'), 'report', 'ok');
    expect(tried.contract.succeeded).toEqual(['report']);
    expect(after(tried).phase.kind).toBe('resting');
    const met = afterCall(tried, 'push', 'ok');
    expect(endOf(after(met))).toEqual(COMPLETED);
    expect(contractMark(met)).toBe('met');
  });

  test('an exponent without end stays at the longest delay', () => {
    const many = { ...contract, maxRetries: 5_000, maxMs: 1e9 };
    const state = after(quiet({ contract: many }, { contract: { succeeded: [], reruns: 4_000 } }));
    expect(state.phase).toMatchObject({ kind: 'resting', untilMs: T0 + 1e9 });
  });

  test.each<[name: string, change: Partial<Reply>, detail: string]>([
    ['a refusal', { finish: 'content_filter' }, 'refused'],
    ['an output that was cut', { finish: 'length' }, 'output_limit'],
  ])('never after %s', (_name, change, detail) => {
    const worn = quiet({ contract }, { output: { cap: 'refused', continued: 3 } });
    expect(endOf(after(worn, change))).toMatchObject({ detail });
  });

  test('the schema is dropped for the rerun, and the valid answer kept', () => {
    const both = quiet({ contract, schema: 'asked' });
    const rerun = rested(after(both, verdict('valid')));
    expect(nextStep(rerun, T0)).toMatchObject({ kind: 'sample', schema: 'none' });
    const done = after(afterCall(afterCall(rerun, 'push', 'ok'), 'report', 'ok'), { head: 'h9' });
    expect(endOf(done)).toEqual(COMPLETED);
    expect(answered(done, COMPLETED)).toEqual({ kind: 'valid', message: 'h1' });
  });

  test('it is not dropped where the required tool is the one that hands the answer in', () => {
    const own = { ...contract, tools: ['StructuredOutput'] };
    const asked = quiet(
      { contract: own, schema: 'asked' },
      { answer: { schema: 'asks', retries: 3, message: null, fault: null } },
    );
    expect(nextStep(rested(after(asked, verdict('invalid'))), T0)).toMatchObject({ schema: 'asked' });
    expect(contractMark(after(asked, verdict('valid')))).toBe('met');
  });
});

describe('the todo gate', () => {
  const gated = quiet({ todoGate: 'on' });

  test('two nudges, then todo_open with how many', () => {
    const states = [1, 2, 3].reduce<TurnState[]>((all) => [...all, after(all.at(-1)!, { openTodos: 4 })], [gated]);
    expect(states.map(({ transition, reminders }) => [transition, reminders])).toEqual([
      ['opened', []],
      ['todo_nudge', ['todo']],
      ['todo_nudge', ['todo']],
      ['todo_nudge', []],
    ]);
    expect(endOf(states[3]!)).toEqual({
      reason: 'COMPLETED',
      detail: 'todo_open',
      decidedBy: 'runtime',
      signal: { name: 'open_todos', count: 4 },
      phase: 'ending',
    });
  });

  test.each<[name: string, state: TurnState, change: Partial<Reply>]>([
    ['nothing is open', gated, { openTodos: 0 }],
    ['the agent does not want it', quiet(), { openTodos: 3 }],
    ['there is a schema', quiet({ todoGate: 'on', schema: 'asked' }), { openTodos: 3, ...verdict('valid') }],
  ])('is silent where %s', (_name, state, change) => {
    expect(endOf(after(state, change))).toEqual(COMPLETED);
  });

  test('a message that came meanwhile is answered before the turn ends with open todos', () => {
    expect(after({ ...gated, todoNudges: 2, inbox: ['in_2'] }, { openTodos: 1 })).toMatchObject({
      transition: 'input_arrived',
    });
  });
});

describe('the token target', () => {
  const target = (rules: Partial<TurnRules> = {}) => quiet({ tokenTarget: 10_000, ...rules });
  const wrote = (outputTokens: number): Partial<Reply> => ({ usage: { ...USAGE, outputTokens } });

  test('goes on until 90 % are used', () => {
    const states = [4_000, 4_999, 1].reduce<TurnState[]>(
      (all, tokens) => [...all, after(all.at(-1)!, wrote(tokens))],
      [target()],
    );
    expect(states.map(({ transition }) => transition)).toEqual([
      'opened',
      'token_target',
      'token_target',
      'token_target',
    ]);
    expect(states.map((state) => endOf(state)?.detail ?? null)).toEqual([null, null, null, 'final_answer']);
  });

  test('stops after three continuations, once the last two brought under 500 tokens each', () => {
    const states = [900, 499, 900, 499, 499].reduce<TurnState[]>(
      (all, tokens) => [...all, after(all.at(-1)!, wrote(tokens))],
      [target()],
    );
    expect(states.map((state) => state.phase.kind)).toEqual(['ready', 'ready', 'ready', 'ready', 'ready', 'ending']);
  });

  test('never for a sub-agent', () => {
    expect(endOf(after(target({ role: 'sub_agent' }), wrote(1)))).toEqual(COMPLETED);
  });
});

describe('the order', () => {
  test('contract before todos before messages before the token target', () => {
    const contract = { tools: ['push'], maxRetries: 1, baseMs: 1, maxMs: 1 };
    const all = quiet({ contract, todoGate: 'on', tokenTarget: 1_000 }, { todoNudges: 1 });
    const open = { openTodos: 2 };
    const first = rested(after({ ...all, inbox: ['in_2'] }, open));
    const second = after(first, open);
    const third = after(second, open);
    const fourth = after({ ...third, inbox: [] }, open);
    expect([first, second, third, fourth].map(({ transition }) => transition)).toEqual([
      'contract_rerun',
      'todo_nudge',
      'input_arrived',
      'token_target',
    ]);
  });

  // Each budget is its own: a go-on of one check gives nothing back to another.
  test('what one check has used up stays used up', () => {
    const contract = { tools: ['push'], maxRetries: 2, baseMs: 1, maxMs: 1 };
    const worn = quiet({ contract, todoGate: 'on' }, { todoNudges: 2, contract: { succeeded: [], reruns: 1 } });
    const rerun = rested(after(worn, { openTodos: 1 }));
    expect(rerun).toMatchObject({ todoNudges: 2, contract: { reruns: 2 } });
    expect(endOf(after(rerun, { openTodos: 1 }))).toMatchObject({ detail: 'todo_open' });
  });
});
