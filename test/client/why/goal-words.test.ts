import { expect, test } from 'vitest';
import { goalAdvice } from '../../../client/why/goal-advice.ts';
import { type GoalMove, goalWords } from '../../../client/why/goal-words.ts';
import type { BlockedOn, GoalCause, PausedBy } from '../../../workflows/core/goal/goal-state.ts';

const moved = (reason: string, detail: string | null, evidence: GoalCause, by: string | null = null): GoalMove => ({
  kind: reason === 'complete' || reason === 'cancelled' ? 'goal.ended' : 'goal.moved',
  layer: 'goal',
  goal: 'goal_1',
  reason,
  detail,
  decidedBy: 'runtime',
  signal: evidence.name,
  evidence,
  by,
  why: by && 'enough',
});

test.each<[GoalMove, string]>([
  [moved('active', null, { name: 'created' }), 'active: it was created'],
  [moved('complete', null, { name: 'sceptics' }), 'complete: judge and sceptics agree'],
  [moved('cancelled', null, { name: 'command', id: 'c' }, 'ann'), 'cancelled: a command of ann, who said “enough”'],
  [
    moved('paused', 'infrastructure', { name: 'turn_end', reason: 'ERROR', detail: 'auth' }),
    'paused/infrastructure: a turn ended ERROR/auth',
  ],
  [
    moved('paused', 'infrastructure', { name: 'judge_failed', tries: 2 }),
    'paused/infrastructure: who judges gave no usable answer 2 times',
  ],
  [
    moved('paused', 'no_progress', { name: 'same_gap', times: 2 }),
    'paused/no_progress: the judge found the same gap twice',
  ],
  [
    moved('paused', 'no_progress', { name: 'no_progress', times: 3 }),
    'paused/no_progress: 3 turns in a row have changed nothing',
  ],
  [
    moved('budget_limited', 'turns', { name: 'limit', limit: 'turns', allowed: 5, used: 5 }),
    'budget_limited/turns: limit turns: 5 of 5 are used',
  ],
  [
    moved('budget_limited', 'usd', { name: 'reserve', limit: 'usd', needed: 900, left: 400 }),
    'budget_limited/usd: limit usd: the next request may use 900, and 400 are left',
  ],
  [
    moved('paused', 'user', { name: 'session', state: 'directive_withdrawn' }),
    'paused/user: its directive was taken out of the queue',
  ],
])('%j', (move, words) => {
  expect(goalWords(move)).toBe(words);
});

const created: GoalCause = { name: 'created' };
const advice = (move: GoalMove, isRunning = false) => goalAdvice(move, isRunning).join(' ');

test.each<PausedBy>(['user', 'no_progress', 'refusal'])('paused by %s: resume it', (by) => {
  expect(advice(moved('paused', by, created))).toContain('`pawl goal resume goal_1`');
});

test.each<[GoalCause, RegExp]>([
  [{ name: 'judge_failed', tries: 2 }, /^See whether the model that judges .*: it tries again by itself; at once with/],
  [{ name: 'workspace_away' }, /^Bring back a worker on the machine that has its files: it tries again/],
  [{ name: 'turn_end', reason: 'ERROR', detail: 'auth' }, /^Nothing: it tries again by itself/],
])('an outage of %j', (cause, words) => {
  expect(advice(moved('paused', 'infrastructure', cause))).toMatch(words);
});

test.each<BlockedOn>([
  'external_dependency',
  'same_blocker',
  'invalid_request',
  'context_unusable',
  'internal',
  'unknown_outcome',
  'session_closed',
])('blocked on %s: what to see to, then wake it', (on) => {
  expect(advice(moved('blocked', on, created))).toMatch(/^.{20,}`pawl goal wake goal_1`/);
});

test('the rest says what ends it', () => {
  const waits = ['time', 'event', 'answer'].map((on) => advice(moved('waiting', on, created)));
  expect(waits).toEqual([
    expect.stringMatching(/at its time, which `pawl goal show goal_1` names; at once with `pawl goal wake goal_1`/),
    expect.stringContaining('`pawl goal wake goal_1 --event <name>`'),
    'It goes on with the answer that its turn waits for.',
  ]);
  expect(advice(moved('blocked', 'context_limit', created))).toContain('new session');
  expect(advice(moved('budget_limited', 'turns', created))).toContain('`pawl goal edit goal_1`');
  expect(advice(moved('active', null, created))).toContain('goes on by itself');
  expect([advice(moved('active', null, created), true), advice(moved('complete', null, created))]).toEqual(['', '']);
  expect(goalAdvice(null, false)).toEqual([]);
});
