import { expect, test } from 'vitest';
import type { TurnActivity } from '../../../client/engine.ts';
import { doingNow } from '../../../client/why/doing.ts';
import { openTurn, type BatchCall, type Phase } from '../../../workflows/core/turn-state.ts';
import { DEFAULT_LIMITS } from '../../../workflows/core/policy.ts';
import { PLAIN_RULES } from '../../../workflows/core/turn-rules.ts';

const NOON = Date.UTC(2026, 0, 1, 12);
const at = (minutes: number) => new Date(NOON + minutes * 60_000).toISOString();

function seen(phase: Phase | null, change: Partial<TurnActivity> = {}): TurnActivity {
  const opened = openTurn({
    head: 'h',
    inputs: [],
    carried: null,
    rules: PLAIN_RULES,
    limits: DEFAULT_LIMITS,
    atMs: NOON,
  });
  return { engine: 'running', state: phase && { ...opened, phase, step: 3 }, pending: [], ...change };
}

const call = (
  tool: string,
  as: { state: 'running' } | { state: 'asking' | 'waiting' | 'in_doubt'; untilMs: number },
): BatchCall => {
  const ref = { ordinal: 0, tool, runs: 'activity', effect: 'none', argsHash: 'a', locks: [], verdict: 'run' } as const;
  return as.state === 'running' ? { ref, state: as.state } : { ref, ...as, approval: 'apr_1' };
};
const batch = (...calls: BatchCall[]): Phase => ({ kind: 'batch', calls, fuse: null });
const pending = (type: string, attempt: number, startedAt: string | null, failure: string | null = null) => [
  { type, attempt, startedAt, failure },
];

test.each([
  ['works', `the sample of step 3 since ${at(1)}`, seen({ kind: 'ready' }, { pending: pending('sample', 1, at(1)) })],
  [
    'works',
    `the sample of step 3 since ${at(1)}, attempt 2`,
    seen({ kind: 'ready' }, { pending: pending('sample', 2, at(1)) }),
  ],
  ['works', `runs shell of step 3 since ${at(0)}`, seen(batch(call('shell', { state: 'running' })))],
  [
    'rests',
    `rests at step 3 until ${at(5)} after rate_limited, then tries again`,
    seen({ kind: 'resting', untilMs: NOON + 300_000, cause: 'rate_limited' }),
  ],
  [
    'waits',
    `waits for a person to decide on apr_1 until ${at(5)}`,
    seen(batch(call('shell', { state: 'asking', untilMs: NOON + 300_000 }))),
  ],
  [
    'waits',
    `waits for the answer to ask_user, apr_1 until ${at(5)}`,
    seen(batch(call('ask_user', { state: 'waiting', untilMs: NOON + 300_000 }))),
  ],
  [
    'waits',
    `waits for a person to say what became of forge, apr_1 until ${at(5)}`,
    seen(batch(call('forge', { state: 'in_doubt', untilMs: NOON + 300_000 }))),
  ],
  // A wait beside a call that acts is not what holds the turn.
  [
    'works',
    `runs shell of step 3 since ${at(0)}`,
    seen(batch(call('ask_user', { state: 'waiting', untilMs: NOON }), call('shell', { state: 'running' }))),
  ],
  [
    'retries',
    'waits for attempt 4 of the end, the one before failed with store.away',
    seen({ kind: 'ready' }, { pending: pending('endTurn', 4, null, 'store.away') }),
  ],
  ['works', `a call since ${at(1)}`, seen(null, { pending: pending('runTool', 1, at(1)) })],
  ['not_known', 'no worker answers for it', seen(null)],
  ['lost', 'the engine says terminated: recovery writes its end within a minute', seen(null, { engine: 'terminated' })],
  ['not_known', 'the engine does not answer, so nobody can say what it does', null],
] as const)('%s: %s', (kind, words, activity) => {
  expect(doingNow(activity)).toMatchObject({ kind, words });
});
