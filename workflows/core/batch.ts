import { POLICY } from './policy.ts';
import type { CallRef, LockMode } from './tools.ts';
import type { BatchCall } from './turn-state.ts';

/**
 * The calls that may begin now. Locks are granted in call order: a call waits for every earlier,
 * unfinished call that it conflicts with, so two writers of one resource never overlap.
 */
export function startable(calls: readonly BatchCall[]): readonly CallRef[] {
  // Behind an outcome that nobody knows and that ends the turn, nothing new is begun.
  if (endingCall(calls)) return [];
  // One in doubt may have to be sent again, so its place is kept.
  const taken = calls.filter((call) => call.state === 'running' || call.state === 'in_doubt').length;
  let free = POLICY.tools.parallel - taken;
  const starts: CallRef[] = [];
  for (const [index, call] of calls.entries()) {
    if (free <= 0) break;
    if (call.state !== 'queued' || call.ref.verdict === 'gate') continue;
    const waitsFor = calls.slice(0, index).some((earlier) => isOpen(earlier) && conflict(earlier.ref, call.ref));
    if (waitsFor) continue;
    starts.push(call.ref);
    free -= 1;
  }
  return starts;
}

export function allReturned(calls: readonly BatchCall[]): boolean {
  return calls.every((call) => !isOpen(call));
}

/** A call on which the turn ends BLOCKED. */
export function blockingCall(calls: readonly BatchCall[]): 'awaiting_input' | 'external_dependency' | null {
  if (calls.some((call) => call.state === 'blocked_on_input')) return 'awaiting_input';
  return calls.some((call) => call.state === 'blocked_on_event') ? 'external_dependency' : null;
}

/** A call whose unknown outcome ends the turn. */
export function endingCall(calls: readonly BatchCall[]): BatchCall | undefined {
  return calls.find((call) => call.state === 'unknown_ends_turn');
}

const OPEN: readonly BatchCall['state'][] = ['queued', 'running', 'asking', 'waiting', 'in_doubt'];

function isOpen(call: BatchCall): boolean {
  return OPEN.includes(call.state);
}

/** Calls that may have taken effect without the turn having learned it, and whose tools can take that back. */
export function undoable(calls: readonly BatchCall[]): readonly number[] {
  return calls.filter((call) => call.ref.undo === 'declared' && MAY_HAVE_ACTED.includes(call.state)).map(ordinalOf);
}

/** `ok` is one of them: what was cut and is found to have happened all the same comes back as that. */
const MAY_HAVE_ACTED: readonly BatchCall['state'][] = [
  'ok',
  'running',
  'in_doubt',
  'not_started',
  'unknown',
  'unknown_ends_turn',
];

function ordinalOf(call: BatchCall): number {
  return call.ref.ordinal;
}

/** The first call in the model's order that nobody has judged for good; nothing runs before it is. */
export function undecided(calls: readonly BatchCall[]): BatchCall | undefined {
  return calls.find((call) => call.state === 'asking' || (call.state === 'queued' && call.ref.verdict === 'gate'));
}

function conflict(a: CallRef, b: CallRef): boolean {
  if (runsAlone(a) || runsAlone(b)) return true;
  return a.locks.some((x) => b.locks.some((y) => x.key === y.key && !BESIDE[x.mode].includes(y.mode)));
}

/** What may be done with a resource at the same time. */
const BESIDE: Readonly<Record<LockMode, readonly LockMode[]>> = {
  read: ['read', 'read_tree', 'write_below'],
  read_tree: ['read', 'read_tree'],
  write_below: ['read', 'write_below'],
  write: [],
};

/** Nothing is known of what it touches, so nothing may run beside it. */
function runsAlone(call: CallRef): boolean {
  return call.effect === 'once' && call.locks.length === 0;
}
