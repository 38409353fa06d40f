import { describe, expect, expectTypeOf, test } from 'vitest';
import {
  continuesByItself,
  type JobSoFar,
  type Decider,
  END_DETAILS,
  type End,
  type EndReason,
  type Signal,
  engineStatusOf,
} from '../../workflows/core/ends.ts';
import { endOfCode, endOfReply, endOfUnknownEffect } from '../../workflows/core/endings.ts';
import { endPhaseOf, type Phase } from '../../workflows/core/turn-state.ts';
import { batch, T0, turn } from './fixtures.ts';

const TABLE = Object.entries(END_DETAILS).flatMap(([reason, details]) =>
  Object.entries(details).map(([detail, decider]) => [reason as EndReason, detail, decider] as const),
);

test('the table of ends is closed: these, and who decides each', () => {
  expect(TABLE.map((row) => row.join(' '))).toEqual([
    'COMPLETED final_answer model',
    'COMPLETED refused model',
    'COMPLETED todo_open runtime',
    'BLOCKED awaiting_input model',
    'BLOCKED external_dependency model',
    'BLOCKED awaiting_approval runtime',
    'BLOCKED no_progress runtime',
    'MAX_TOKENS output_limit runtime',
    'MAX_TOKENS context_limit runtime',
    'ABORTED user_cancel user',
    'ABORTED permission_rejected user',
    'ABORTED permission_cancelled user',
    'ABORTED max_steps runtime',
    'ABORTED budget runtime',
    'ABORTED deadline runtime',
    'ABORTED hook_stop runtime',
    'ABORTED scheduler_cancel scheduler',
    'ABORTED parent_cancelled inherited',
    'ERROR auth runtime',
    'ERROR model runtime',
    'ERROR provider_unavailable runtime',
    'ERROR invalid_request runtime',
    'ERROR context_unusable runtime',
    'ERROR storage runtime',
    'ERROR tool_infrastructure runtime',
    'ERROR internal runtime',
    'INTERRUPTED terminated user',
    'INTERRUPTED timed_out runtime',
    'INTERRUPTED unknown_outcome runtime',
    'INTERRUPTED workspace_lost runtime',
    'INTERRUPTED lost runtime',
  ]);
});

// A detail is looked up without its reason in exit codes and search attributes.
test('no detail stands under two reasons', () => {
  expect(new Set(TABLE.map(([, detail]) => detail)).size).toBe(TABLE.length);
});

describe('the type allows no other end', () => {
  type Of<D extends End['detail']> = Extract<End, { detail: D }>;
  test('each detail has its decider, a signal and a phase', () => {
    expectTypeOf<Of<'final_answer'>['decidedBy']>().toEqualTypeOf<'model'>();
    expectTypeOf<Of<'user_cancel'>['decidedBy']>().toEqualTypeOf<'user'>();
    expectTypeOf<Of<'max_steps'>['decidedBy']>().toEqualTypeOf<'runtime'>();
    expectTypeOf<Of<'scheduler_cancel'>['decidedBy']>().toEqualTypeOf<'scheduler'>();
    expectTypeOf<Of<'parent_cancelled'>['decidedBy']>().toEqualTypeOf<Decider>();
    expectTypeOf<End['reason']>().toEqualTypeOf<EndReason>();
    expectTypeOf<keyof End>().toEqualTypeOf<'reason' | 'detail' | 'decidedBy' | 'signal' | 'phase'>();
  });

  test('what the table does not have is not written down', () => {
    const rest = { signal: { name: 'model_stop' }, phase: 'ending' } as const;
    // @ts-expect-error a model never cancels
    const wrongDecider: End = { reason: 'ABORTED', detail: 'user_cancel', decidedBy: 'model', ...rest };
    // @ts-expect-error a detail stands under its own reason only
    const wrongReason: End = { reason: 'ERROR', detail: 'final_answer', decidedBy: 'model', ...rest };
    // @ts-expect-error no end without a signal
    const noSignal: End = { reason: 'COMPLETED', detail: 'final_answer', decidedBy: 'model', phase: 'ending' };
    // @ts-expect-error a limit names itself and how much of it was used
    const noAmount: Signal = { name: 'limit', limit: 'steps', allowed: 3 };
    expect([wrongDecider, wrongReason, noSignal, noAmount]).toHaveLength(4);
  });
});

test.each<[EndReason, string]>([
  ['COMPLETED', 'completed'],
  ['BLOCKED', 'completed'],
  ['MAX_TOKENS', 'completed'],
  ['ABORTED', 'canceled'],
  ['ERROR', 'failed'],
  ['INTERRUPTED', 'failed'],
])('the engine shows %s as %s', (reason, status) => {
  expect(engineStatusOf(reason)).toBe(status);
});

describe('a job goes on by itself', () => {
  const continued = (before: JobSoFar) =>
    TABLE.filter(([reason, detail]) =>
      continuesByItself({ reason, detail } as Pick<End, 'reason' | 'detail'>, before),
    ).map(([, detail]) => detail);

  test.each<[JobSoFar, string, string[]]>([
    [
      { continuations: 0, cancelAsked: false },
      'only after what a machine did',
      ['timed_out', 'workspace_lost', 'lost'],
    ],
    [{ continuations: 2, cancelAsked: false }, 'up to the third time', ['timed_out', 'workspace_lost', 'lost']],
    [{ continuations: 3, cancelAsked: false }, 'not a fourth time', []],
    [{ continuations: 0, cancelAsked: true }, 'not where somebody wanted it to end', []],
  ])('%j: %s', (before, _name, details) => {
    expect(continued(before)).toEqual(details);
  });
});

describe('ends that the core decides', () => {
  const state = turn({ tries: { empty: 2, cutCalls: 6 }, limits: { outputTokens: 99 } });
  const ends: End[] = [
    endOfReply(state, 'final_answer'),
    endOfReply(state, 'refused'),
    endOfReply(state, 'output_limit'),
    endOfReply(state, 'empty'),
    endOfReply(state, 'cut_calls'),
    endOfCode(state, 'a.b', 'store'),
    endOfCode(state, 'a.b', 'tool'),
    endOfCode(state, 'a.b', 'context'),
    endOfCode(state, 'a.b', 'code'),
    endOfUnknownEffect(),
  ];
  test('exactly these', () => {
    expect(ends.map((end) => `${end.reason}/${end.detail} ${end.signal.name} ${end.phase}`)).toEqual([
      'COMPLETED/final_answer model_stop ending',
      'COMPLETED/refused model_refusal ending',
      'MAX_TOKENS/output_limit limit ending',
      'ERROR/model retries_spent sampling',
      'ERROR/model retries_spent sampling',
      'ERROR/storage fault sampling',
      'ERROR/tool_infrastructure fault sampling',
      'ERROR/context_unusable fault sampling',
      'ERROR/internal fault sampling',
      'INTERRUPTED/unknown_outcome fault tools',
    ]);
  });
  test('each by the decider of the table', () => {
    for (const end of ends) expect(TABLE).toContainEqual([end.reason, end.detail, end.decidedBy]);
  });
});

test.each<[Phase, End['phase']]>([
  [{ kind: 'ready' }, 'sampling'],
  [{ kind: 'compacting', cause: 'window' }, 'compacting'],
  [{ kind: 'compaction_resting', untilMs: T0, cause: 'window' }, 'compacting'],
  [{ kind: 'resting', untilMs: T0, cause: 'auth' }, 'resting'],
  [batch('queued'), 'tools'],
  [{ kind: 'ending', end: endOfUnknownEffect() }, 'ending'],
])('an end names where the turn stood (%j)', (phase, name) => {
  expect(endPhaseOf(phase)).toBe(name);
});
