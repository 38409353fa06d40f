import { describe, expect, test } from 'vitest';
import { exitCodeOf } from '../../../client/cli/exit-code.ts';
import {
  argumentSummary,
  duration,
  endLine,
  oneLine,
  openJobLine,
  printable,
  usageLine,
} from '../../../client/cli/format.ts';
import type { Job, JobTurnEnd } from '../../../client/index.ts';
import { NO_USAGE } from '../../../workflows/core/sample-outcome.ts';

const END: JobTurnEnd = {
  reason: 'COMPLETED',
  detail: 'final_answer',
  decidedBy: 'model',
  signal: { name: 'model_stop' },
  phase: 'ending',
  step: 3,
  usage: { ...NO_USAGE, inputTokens: 1200, outputTokens: 34, microUsd: null },
  by: null,
  why: null,
  recordedBy: 'turn',
  structuredOutput: null,
  contract: null,
  resumeAt: null,
  at: '2026-01-01T00:00:00.000Z',
};

test.each([
  [0, '0 ms'],
  [-5, '0 ms'],
  [999, '999 ms'],
  [1_234, '1.2 s'],
  [61_500, '1 min 1 s'],
  [3_700_000, '1 h 1 min'],
  [3 * 86_400_000, '3 days'],
])('%d ms is %s', (ms, text) => {
  expect(duration(ms)).toBe(text);
});

// Text of a model or a tool must not be able to steer the terminal.
test.each([
  ['plain\ttext\n', 'plain\ttext\n'],
  ['\u001b[31mred\u001b[0m', '[31mred[0m'],
  ['\u009b2J', '2J'],
  ['a\r\nb\rc', 'a\nb\nc'],
  ['bell\u0007', 'bell'],
])('%j is shown as %j', (text, shown) => {
  expect(printable(text)).toBe(shown);
});

test.each([
  ['a\n  b', 10, 'a b'],
  ['abcdef', 4, 'abc…'],
  ['ab😀def', 4, 'ab…'],
])('one line of %j in %d characters', (text, width, line) => {
  expect(oneLine(text, width)).toBe(line);
});

test.each([
  ['{"command":"npm test","timeout":5}', 'npm test'],
  ['{"old":"a","path":"src/a.ts"}', 'src/a.ts'],
  ['{"depth":2,"label":"x"}', 'x'],
  ['{"depth":2}', '2'],
  ['', ''],
  ['{}', ''],
  ['null', 'null'],
  ['{"command":', '{"command":'],
])('the arguments %s are about %j', (raw, about) => {
  expect(argumentSummary(raw, 40)).toBe(about);
});

describe('an end in one line', () => {
  test.each<[JobTurnEnd, string]>([
    [END, 'COMPLETED/final_answer, decided by the model [model_stop]'],
    [
      {
        ...END,
        reason: 'ABORTED',
        detail: 'user_cancel',
        decidedBy: 'user',
        signal: { name: 'cancel_request', id: 'c1' },
        by: 'anna',
        why: 'late',
      },
      'ABORTED/user_cancel, decided by a user (anna): “late” [cancel_request c1]',
    ],
    [
      {
        ...END,
        reason: 'ABORTED',
        detail: 'max_steps',
        decidedBy: 'runtime',
        signal: { name: 'limit', limit: 'steps', allowed: 5, used: 5 },
      },
      'ABORTED/max_steps, decided by the runtime [limit steps: 5 of 5]',
    ],
    [
      {
        ...END,
        reason: 'ERROR',
        detail: 'auth',
        decidedBy: 'runtime',
        signal: { name: 'provider_answer', cause: 'auth', status: 401 },
      },
      'ERROR/auth, decided by the runtime [auth, HTTP 401]',
    ],
  ])('%#', (end, line) => {
    expect(endLine(end)).toBe(line);
  });

  test('usage that is not known is said to be more', () => {
    expect(usageLine(END)).toBe('3 tool rounds, 1200 tokens in, 34 out');
    expect(usageLine({ ...END, usage: { ...END.usage, cachedTokens: 7, complete: false } })).toBe(
      '3 tool rounds, 1200 tokens in (7 cached), 34 out, at least',
    );
    expect(usageLine({ ...END, usage: { ...END.usage, microUsd: 120_000, complete: false } })).toBe(
      '3 tool rounds, 1200 tokens in, 34 out, at least, ≥ $0.12, incomplete',
    );
  });
});

test.each([
  ['COMPLETED', 0],
  ['ERROR', 1],
  ['BLOCKED', 3],
  ['MAX_TOKENS', 4],
  ['ABORTED', 5],
  ['INTERRUPTED', 6],
] as const)('%s leaves with %d', (reason, code) => {
  expect(exitCodeOf({ end: { ...END, reason }, dropped: null })).toBe(code);
});

test('a job that never began, or that a person kept from going on, leaves as an aborted one', () => {
  const dropped = { as: 'withdrawn', by: 'ann', why: null, at: null } as const;
  expect(exitCodeOf({ end: null, dropped })).toBe(5);
  expect(exitCodeOf({ end: { ...END, reason: 'INTERRUPTED', detail: 'lost' }, dropped })).toBe(5);
});

test('a row that the engine disagrees with is shown as such', () => {
  const job: Job = {
    id: 'job_1',
    session: 's',
    agent: 'a',
    ticket: 'T-1',
    state: 'running',
    createdAt: END.at,
    turn: 's/1',
    end: null,
    dropped: null,
    goal: null,
  };
  const now = Date.parse(END.at) + 5_000;
  expect(openJobLine({ job, engine: 'running', agrees: true, agents: [] }, now)).toBe(
    'job_1  running  5.0 s ago  a  T-1',
  );
  expect(openJobLine({ job, engine: 'terminated', agrees: false, agents: [] }, now)).toContain(
    'the engine says terminated',
  );
  expect(openJobLine({ job, engine: 'away', agrees: false, agents: [] }, now)).toContain('not known');
});
