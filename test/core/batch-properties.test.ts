import fc from 'fast-check';
import { expect, test } from 'vitest';
import { apply } from '../../workflows/core/apply.ts';
import { startable } from '../../workflows/core/batch.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import type { CallRef, CallStatus, LockKey, LockMode } from '../../workflows/core/tools.ts';
import type { TurnEvent } from '../../workflows/core/turn-event.ts';
import { callsOf, type TurnState } from '../../workflows/core/turn-state.ts';
import { ref, T0, turn } from './fixtures.ts';

/** When a call ran, on a clock that ticks with each thing that happens. */
interface Ran {
  readonly ref: CallRef;
  began: number;
  ended: number;
}

interface Batch {
  readonly ran: readonly Ran[];
  /** The most that ran at one time. */
  readonly most: number;
  readonly after: TurnState;
}

const modes = fc.constantFrom<LockMode[]>('read', 'write', 'read_tree', 'write_below');
const locks = fc.uniqueArray(fc.record({ key: fc.constantFrom('a', 'b', 'c'), mode: modes }), {
  maxLength: 3,
  selector: ({ key }) => key,
});

/** Paths of a small tree, named by their letters: `ab` lies in `a`, and all in the empty one. */
const PATHS = ['', 'a', 'ab', 'ac', 'd'];
const above = (path: string) => PATHS.filter((folder) => folder !== path && path.startsWith(folder));
const file = fc.record({
  path: fc.constantFrom(...PATHS),
  mode: fc.constantFrom<LockMode[]>('read', 'write', 'read_tree'),
});
const ofFile = file.map(({ path, mode }): { locks: LockKey[]; effect: CallRef['effect'] } => ({
  locks: [
    { key: path, mode },
    ...(mode === 'write' ? above(path).map((key) => ({ key, mode: 'write_below' }) as const) : []),
  ],
  effect: mode === 'write' ? 'idempotent' : 'none',
}));
const any = fc.record({ locks, effect: fc.constantFrom<CallRef['effect'][]>('none', 'idempotent', 'keyed', 'once') });
const free = fc.constant({ locks: [], effect: 'none' } as const);
const refs = fc
  .oneof(
    { weight: 4, arbitrary: fc.array(any, { minLength: 1, maxLength: 24 }) },
    { weight: 4, arbitrary: fc.array(ofFile, { minLength: 1, maxLength: 24 }) },
    { weight: 1, arbitrary: fc.array(free, { minLength: 1, maxLength: 24 }) },
  )
  .map((all) => all.map((each, ordinal) => ref(ordinal, each)));
const statuses = fc.constantFrom<CallStatus[]>('ok', 'error', 'unknown');

/** Runs a batch as the loop does, each time letting whichever call the world picks come back first. */
function run(calls: readonly CallRef[], pick: fc.GeneratorValue): Batch {
  let state = turn({
    phase: { kind: 'batch', calls: calls.map((each) => ({ ref: each, state: 'queued' })), fuse: null },
  });
  const hear = (event: { [K in TurnEvent as K['kind']]: Omit<K, 'atMs'> }[TurnEvent['kind']]) => {
    state = apply(state, { ...event, atMs: T0 } as TurnEvent);
  };
  const ran = new Map<number, Ran>();
  const running: number[] = [];
  let clock = 0;
  let most = 0;
  for (;;) {
    for (const each of startable(callsOf(state.phase))) {
      hear({ kind: 'call_started', ordinal: each.ordinal });
      ran.set(each.ordinal, { ref: each, began: (clock += 1), ended: Infinity });
      running.push(each.ordinal);
    }
    most = Math.max(most, running.length);
    if (running.length === 0) break;
    const [ordinal = 0] = running.splice(pick(fc.nat, running.length - 1), 1);
    hear({ kind: 'call_finished', ordinal, status: pick(() => statuses) });
    ran.get(ordinal)!.ended = clock += 1;
  }
  hear({ kind: 'batch_returned' });
  return { ran: calls.flatMap(({ ordinal }) => ran.get(ordinal) ?? []), most, after: state };
}

/** Holds for random batches, whatever the order in which their calls come back. */
function always(name: string, holds: (batch: Batch, calls: readonly CallRef[]) => void): void {
  test(name, () => {
    fc.assert(
      fc.property(refs, fc.gen(), (calls, pick) => holds(run(calls, pick), calls)),
      { numRuns: 400 },
    );
  });
}

const overlap = (one: Ran, other: Ran) => one.began < other.ended && other.began < one.ended;
const holds = ({ ref: { locks: of } }: Ran, key: string, mode: LockMode) =>
  of.some((lock) => lock.key === key && lock.mode === mode);

function pairs(ran: readonly Ran[], check: (earlier: Ran, later: Ran) => void): void {
  for (const [at, earlier] of ran.entries()) for (const later of ran.slice(at + 1)) check(earlier, later);
}

always('two writers of one path never overlap, and the first asked for is the first to write', ({ ran }) => {
  pairs(ran, (earlier, later) => {
    for (const key of [...PATHS, 'b', 'c']) {
      if (holds(earlier, key, 'write') && holds(later, key, 'write'))
        expect(later.began).toBeGreaterThan(earlier.ended);
    }
  });
});

always('a reader waits for earlier writers, and a writer for earlier readers', ({ ran }) => {
  pairs(ran, (earlier, later) => {
    for (const key of [...PATHS, 'b', 'c']) {
      const readsAfter = holds(earlier, key, 'write') && holds(later, key, 'read');
      const writesAfter = holds(earlier, key, 'read') && holds(later, key, 'write');
      if (readsAfter || writesAfter) expect(later.began).toBeGreaterThan(earlier.ended);
    }
  });
});

/** In words of its own: one of them reads a tree in which the other one writes. */
function meetsTree({ ref: reader }: Ran, { ref: writer }: Ran): boolean {
  const trees = reader.locks.flatMap(({ key, mode }) => (mode === 'read_tree' ? [key] : []));
  const written = writer.locks.flatMap(({ key, mode }) => (mode === 'write' || mode === 'write_below' ? [key] : []));
  return trees.some((tree) => written.includes(tree));
}

always('a reader of a tree waits for earlier writers in it, and they for it', ({ ran }) => {
  pairs(ran, (earlier, later) => {
    if (meetsTree(earlier, later) || meetsTree(later, earlier)) expect(later.began).toBeGreaterThan(earlier.ended);
  });
});

always('a once call without lock keys runs alone', ({ ran }) => {
  const isBlind = ({ ref: { effect, locks: of } }: Ran) => effect === 'once' && of.length === 0;
  pairs(ran, (one, other) => {
    if (isBlind(one) || isBlind(other)) expect(overlap(one, other)).toBe(false);
  });
});

always('never more than ten at once, and all of what is free up to that', ({ most }, calls) => {
  expect(most).toBeLessThanOrEqual(POLICY.tools.parallel);
  const isFree = calls.every(({ effect, locks: of }) => of.length === 0 && effect !== 'once');
  if (isFree) expect(most).toBe(Math.min(calls.length, 10));
});

always('every call runs, once, and has exactly one result; the results stay in call order', ({ ran, after }, calls) => {
  expect(ran.map(({ ref: { ordinal } }) => ordinal)).toEqual(calls.map(({ ordinal }) => ordinal));
  expect(ran.every(({ ended }) => ended < Infinity)).toBe(true);
  expect(after).toMatchObject({ phase: { kind: 'ready' }, unappendedResults: calls.length, step: 1 });
});

// Without such batches the properties above would hold for want of anything to hold for.
test('the batches have what the properties are about', () => {
  const seen = { shared: 0, blind: 0, full: 0, trees: 0, beside: 0 };
  fc.assert(
    fc.property(refs, fc.gen(), (calls, pick) => {
      const { ran, most } = run(calls, pick);
      pairs(ran, (earlier, later) => {
        if (holds(earlier, 'a', 'write') && holds(later, 'a', 'write')) seen.shared += 1;
        if (holds(earlier, '', 'read_tree') && holds(later, 'ab', 'write')) seen.trees += 1;
        if (holds(earlier, 'ab', 'write') && holds(later, 'ac', 'write') && overlap(earlier, later)) seen.beside += 1;
      });
      if (calls.some(({ effect, locks: of }) => effect === 'once' && of.length === 0)) seen.blind += 1;
      if (most === POLICY.tools.parallel && calls.length > most) seen.full += 1;
    }),
    { numRuns: 400 },
  );
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(0);
});
