import { describe, expect, test } from 'vitest';
import { allReturned, endingCall, startable } from '../../workflows/core/batch.ts';
import type { CallRef, LockKey } from '../../workflows/core/tools.ts';
import type { BatchCall } from '../../workflows/core/turn-state.ts';
import { batch, ref } from './fixtures.ts';

const read = (key: string): LockKey => ({ key, mode: 'read' });
const write = (key: string): LockKey => ({ key, mode: 'write' });
const reads = (...keys: string[]) => ({ locks: keys.map(read) });
const writes = (...keys: string[]) => ({ effect: 'idempotent', locks: keys.map(write) }) as const;
const alone = { effect: 'once', locks: [] } as const;

type State = Exclude<BatchCall['state'], 'asking' | 'waiting'>;
type Line = readonly [change: Partial<CallRef>, state: State];
const lines = (...all: readonly Line[]): BatchCall[] =>
  all.map(([change, state], ordinal) => ({ ref: ref(ordinal, change), state }));

describe('what may begin', () => {
  test.each<[name: string, calls: BatchCall[], begins: number[]]>([
    ['readers without locks, all at once', lines([{}, 'queued'], [{}, 'queued'], [{}, 'queued']), [0, 1, 2]],
    ['of two writers of one file, the first', lines([writes('f'), 'queued'], [writes('f'), 'queued']), [0]],
    ['the second writer once the first is back', lines([writes('f'), 'error'], [writes('f'), 'queued']), [1]],
    ['not while the first runs', lines([writes('f'), 'running'], [writes('f'), 'queued']), []],
    ['writers of two files, both', lines([writes('f'), 'queued'], [writes('g'), 'queued']), [0, 1]],
    [
      'readers of one file together',
      lines([reads('f'), 'running'], [reads('f'), 'queued'], [reads('f'), 'queued']),
      [1, 2],
    ],
    ['a writer waits for earlier readers', lines([reads('f'), 'running'], [writes('f'), 'queued']), []],
    [
      'a reader waits for an earlier writer',
      lines([writes('f'), 'queued'], [reads('f'), 'queued'], [reads('g'), 'queued']),
      [0, 2],
    ],
    // Trap: a reader that overtakes a waiting writer would read what the model meant to be changed before.
    [
      'no reader overtakes a writer that waits',
      lines([reads('f'), 'running'], [writes('f'), 'queued'], [reads('f'), 'queued']),
      [],
    ],
    [
      'an earlier reader may run beside a later writer’s wait',
      lines([reads('f'), 'queued'], [writes('f'), 'queued']),
      [0],
    ],
    [
      'one lock of several is enough to wait',
      lines([writes('a', 'b'), 'running'], [writes('b', 'c'), 'queued'], [writes('c'), 'queued']),
      [],
    ],
    ['a once call without locks, alone', lines([alone, 'queued'], [{}, 'queued'], [alone, 'queued']), [0]],
    ['it waits for what runs', lines([{}, 'running'], [alone, 'queued'], [{}, 'queued']), []],
    ['after it the others', lines([alone, 'ok'], [{}, 'queued'], [reads('f'), 'queued']), [1, 2]],
    [
      'a once call with locks only minds its locks',
      lines([{ effect: 'once', locks: [write('f')] }, 'queued'], [{}, 'queued']),
      [0, 1],
    ],
    [
      'a call that is answered already is no obstacle',
      lines([{ ...alone, verdict: 'answered' }, 'error'], [{}, 'queued']),
      [1],
    ],
    [
      'a call with an open gate does not begin, nor what conflicts with it',
      lines([{ ...writes('f'), verdict: 'gate' }, 'queued'], [reads('f'), 'queued'], [{}, 'queued']),
      [2],
    ],
    [
      'at most ten at once',
      lines(...Array.from({ length: 14 }, (): Line => [{}, 'queued'])),
      [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    ],
    [
      'those that run count',
      lines(...Array.from({ length: 9 }, (): Line => [{}, 'running']), [{}, 'queued'], [{}, 'queued']),
      [9],
    ],
    [
      'ten that run leave no room',
      lines(...Array.from({ length: 10 }, (): Line => [{}, 'running']), [{}, 'queued']),
      [],
    ],
    ['nothing, of nothing', [], []],
  ])('%s', (_name, calls, begins) => {
    expect(startable(calls).map((call) => call.ordinal)).toEqual(begins);
  });
});

test.each<[states: State[], all: boolean]>([
  [[], true],
  [['ok', 'error', 'not_started', 'stopped', 'unknown', 'unknown_ends_turn'], true],
  [['ok', 'queued'], false],
  [['running', 'ok'], false],
])('a batch is back when no call is open: %j', (states, all) => {
  expect(allReturned(batch(...states).calls)).toBe(all);
});

test('behind an outcome that nobody knows and that ends the turn, nothing new begins', () => {
  expect(startable(lines([alone, 'unknown_ends_turn'], [{}, 'queued'], [alone, 'queued']))).toEqual([]);
});

test('the call that ends the turn is the first whose tool says so', () => {
  expect(endingCall(batch('unknown', 'ok').calls)).toBeUndefined();
  expect(endingCall(batch('ok', 'unknown_ends_turn', 'unknown_ends_turn').calls)?.ref.ordinal).toBe(1);
});
