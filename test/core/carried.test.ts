import { describe, expect, test } from 'vitest';
import { apply } from '../../workflows/core/apply.ts';
import { nextStep } from '../../workflows/core/next-step.ts';
import { DEFAULT_LIMITS } from '../../workflows/core/policy.ts';
import type { CallStatus } from '../../workflows/core/tools.ts';
import { PLAIN_RULES } from '../../workflows/core/turn-rules.ts';
import type { TurnEvent } from '../../workflows/core/turn-event.ts';
import { openTurn, type TurnState } from '../../workflows/core/turn-state.ts';
import { CANCELLED, changed, endOf, frozen, ref, T0 } from './fixtures.ts';

const call = ref(3, { tool: 'deploy', effect: 'once' });
const opened = frozen(
  openTurn({
    head: 'h0',
    inputs: ['in_yes'],
    rules: PLAIN_RULES,
    limits: DEFAULT_LIMITS,
    atMs: T0,
    carried: { assistant: 'before', ref: call },
  }),
);

type Heardless = TurnEvent extends infer E ? (E extends TurnEvent ? Omit<E, 'atMs'> : never) : never;
const after = (...events: readonly Heardless[]): TurnState =>
  events.reduce((state, event) => apply(state, frozen({ ...event, atMs: T0 } as TurnEvent)), opened);

const started = { kind: 'call_started', ordinal: 3 } as const;
const returned = { kind: 'batch_returned' } as const;
const finished = (status: CallStatus) => ({ kind: 'call_finished', ordinal: 3, status }) as const;

test('the first step of a turn that a late yes has opened is to make that call', () => {
  expect(opened.phase).toEqual({ kind: 'carried', assistant: 'before', call: { ref: call, state: 'queued' } });
  expect(nextStep(opened, T0)).toEqual({ kind: 'runTools' });
});

// Trap: counted as a batch of this turn it would be answered with a second tool result.
test.each<CallStatus>(['ok', 'error', 'denied', 'unknown', 'stopped'])(
  'back as %s, the model is asked with the input that opened the turn; no result, no step',
  (status) => {
    const state = after(started, finished(status), returned);
    expect(changed(opened, state)).toEqual({ phase: { kind: 'ready' }, transition: 'carried_call' });
    expect(nextStep(state, T0)).toEqual({
      kind: 'sample',
      inputs: ['in_yes'],
      results: 0,
      reminders: [],
      transition: 'carried_call',
      watchRepetition: true,
      model: 'primary',
      outputTokens: 8_192,
      onCut: 'drop',
      schema: 'none',
    });
  },
);

describe('it ends early', () => {
  test('by an unknown outcome whose tool says so', () => {
    expect(endOf(after(started, finished('unknown_ends_turn'), returned))).toMatchObject({
      reason: 'INTERRUPTED',
      detail: 'unknown_outcome',
    });
  });

  test.each([
    ['before it began', [] as const],
    ['while it ran', [started] as const],
  ])('by a cancel %s', (_name, before) => {
    const state = after(...before, { kind: 'cancel_requested' }, returned);
    expect(state.phase.kind).toBe('carried');
    expect(nextStep(state, T0)).toEqual({ kind: 'finish', end: { ...CANCELLED, phase: 'tools' } });
  });

  test('by a fault of the tools', () => {
    expect(endOf(after(started, { kind: 'failed', type: 'tool.x', source: 'tool' }))).toMatchObject({
      reason: 'ERROR',
      detail: 'tool_infrastructure',
      phase: 'tools',
    });
  });
});

test.each<[name: string, events: readonly Heardless[], state: string]>([
  ['it begins once', [started, finished('ok'), started], 'ok'],
  ['it comes back once', [started, finished('ok'), finished('unknown')], 'ok'],
  ['a word about another call changes nothing', [{ kind: 'call_started', ordinal: 0 }], 'queued'],
  ['nor does an answer or a decision', [{ kind: 'answer_arrived', approval: 'apr' }], 'queued'],
])('%s', (_name, events, state) => {
  const { phase } = after(...events);
  expect(phase.kind === 'carried' && phase.call.state).toBe(state);
});

test('inputs that come meanwhile wait behind the one that opened the turn', () => {
  const state = after(started, { kind: 'inputs_arrived', inputs: ['in_2'] }, finished('ok'), returned);
  expect(state.inbox).toEqual(['in_yes', 'in_2']);
});

test('its time counts as running time', () => {
  expect(apply(opened, { ...started, atMs: T0 + 70 }).runningMs).toBe(70);
});
