import { describe, expect, test } from 'vitest';
import { allReturned, endingCall, startable, undoable } from '../../workflows/core/batch.ts';
import type { CallRef, LockKey } from '../../workflows/core/tools.ts';
import type { BatchCall } from '../../workflows/core/turn-state.ts';
import { batch, ref } from './fixtures.ts';

const read = (key: string): LockKey => ({ key, mode: 'read' });
const write = (key: string): LockKey => ({ key, mode: 'write' });
const reads = (...keys: string[]) => ({ locks: keys.map(read) });
const writes = (...keys: string[]) => ({ effect: 'idempotent', locks: keys.map(write) }) as const;
const tree = (key: string) => ({ locks: [{ key, mode: 'read_tree' }] }) as const;
const within = (folder: string, key: string) =>
  ({ effect: 'idempotent', locks: [write(key), { key: folder, mode: 'write_below' }] }) as const;
const alone = { effect: 'once', locks: [] } as const;

type State = Exclude<BatchCall['state'], 'asking' | 'waiting' | 'in_doubt'>;
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
    [
      'writers in one folder, side by side',
      lines([within('d', 'd/f'), 'running'], [within('d', 'd/g'), 'queued'], [reads('d/h'), 'queued']),
      [1, 2],
    ],
    [
      'a reader of the folder waits for those who write in it, and who writes in it then for the reader',
      lines([within('d', 'd/f'), 'running'], [tree('d'), 'queued'], [within('d', 'd/g'), 'queued']),
      [],
    ],
    ['a reader of another folder does not', lines([within('d', 'd/f'), 'running'], [tree('e'), 'queued']), [1]],
    [
      'readers of a folder and of a file together',
      lines([tree('d'), 'running'], [tree('d'), 'queued'], [reads('d'), 'queued']),
      [1, 2],
    ],
    [
      'whoever writes the folder itself is beside nobody who writes in it',
      lines([within('d', 'd/f'), 'running'], [writes('d'), 'queued']),
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

describe('a call in doubt', () => {
  const doubt = (ordinal: number, change: Partial<CallRef> = {}): BatchCall => ({
    ref: ref(ordinal, { effect: 'once', locks: [write('f')], ...change }),
    state: 'in_doubt',
    approval: 'out_1',
    untilMs: 9,
  });
  const begins = (...calls: BatchCall[]) => startable(calls).map((call) => call.ordinal);

  test('keeps its locks, and nothing else waits for it', () => {
    expect(begins(doubt(0), { ref: ref(1, reads('f')), state: 'queued' }, { ref: ref(2), state: 'queued' })).toEqual([
      2,
    ]);
  });

  test('that runs alone lets nothing begin', () => {
    expect(begins(doubt(0, alone), { ref: ref(1), state: 'queued' })).toEqual([]);
  });

  // It may be sent again, and then it is one of the ten.
  test('keeps its place among the ten', () => {
    const others = Array.from({ length: 12 }, (_, n): BatchCall => ({ ref: ref(n + 1), state: 'queued' }));
    expect(begins(doubt(0), ...others)).toHaveLength(9);
  });

  test('is not back', () => {
    expect(allReturned([doubt(0)])).toBe(false);
  });
});

test('what may have acted and can be taken back is undone, in call order; what surely has not, is not', () => {
  const states: State[] = [
    'queued',
    'running',
    'ok',
    'error',
    'not_started',
    'stopped',
    'unknown',
    'unknown_ends_turn',
    'denied',
    'fused',
  ];
  const declared = { effect: 'once', undo: 'declared' } as const;
  expect(undoable(lines(...states.map((state): Line => [declared, state])))).toEqual([1, 2, 4, 6, 7]);
  expect(undoable(lines(...states.map((state): Line => [{ effect: 'once' }, state])))).toEqual([]);
});

test('the call that ends the turn is the first whose tool says so', () => {
  expect(endingCall(batch('unknown', 'ok').calls)).toBeUndefined();
  expect(endingCall(batch('ok', 'unknown_ends_turn', 'unknown_ends_turn').calls)?.ref.ordinal).toBe(1);
});
