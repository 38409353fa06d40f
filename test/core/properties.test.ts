import { endingCall } from '../../workflows/core/batch.ts';
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import { apply } from '../../workflows/core/apply.ts';
import { limitReached } from '../../workflows/core/limits.ts';
import { nextStep } from '../../workflows/core/next-step.ts';
import { DEFAULT_PATIENCE as PATIENCE, POLICY } from '../../workflows/core/policy.ts';
import type { CallRef } from '../../workflows/core/tools.ts';
import type { TurnEvent } from '../../workflows/core/turn-event.ts';
import { isWaiting, type BatchCall, type TurnState } from '../../workflows/core/turn-state.ts';
import { always } from './always.ts';
import { CANCELLED, frozen } from './fixtures.ts';
import type { Heard } from './play.ts';

always('a turn comes to exactly one end, by the first step that says finish', ({ steps, end }) => {
  expect(end).not.toBeNull();
  expect(steps.filter(({ step }) => step.kind === 'finish')).toHaveLength(1);
});

always('an end that is decided is not changed by anything that comes later', ({ heard }) => {
  const at = heard.findIndex(({ after }) => after.phase.kind === 'ending');
  if (at === -1) return;
  const { phase, asked } = heard[at]!.after;
  for (const { after } of heard.slice(at)) expect([after.phase, after.asked]).toEqual([phase, asked]);
  const late: TurnEvent[] = [
    { kind: 'cancel_requested', atMs: 9e12 },
    { kind: 'failed', type: 'x.y', source: 'store', atMs: 9e12 },
    { kind: 'end_decided', end: CANCELLED, atMs: 9e12 },
    { kind: 'rested', atMs: 9e12 },
    { kind: 'batch_returned', atMs: 9e12 },
    { kind: 'call_finished', ordinal: 0, status: 'ok', atMs: 9e12 },
    { kind: 'inputs_arrived', inputs: ['late'], atMs: 9e12 },
  ];
  const scheduled = nextStep(heard[at]!.after, 0);
  expect(nextStep(late.reduce(apply, heard[at]!.after), 9e12)).toEqual(scheduled);
});

always('a cancel that came before the end was scheduled is the end', ({ cancelled, end }) => {
  expect(end?.detail === 'user_cancel').toBe(cancelled);
});

always('a context is compacted within its own budgets, and never behind a limit', ({ steps, heard }) => {
  for (const { state: at, step } of steps) if (step.kind === 'compact') expect(limitReached(at)).toBeNull();
  let sinceSuccess = 0;
  for (const { before, event, after } of heard) {
    const { failed, shrinks, ineffective } = after.context;
    expect(Math.max(failed, shrinks)).toBeLessThanOrEqual(POLICY.compaction.retries);
    expect(ineffective).toBeLessThanOrEqual(POLICY.compaction.ineffectiveInARow);
    if (ineffective === POLICY.compaction.ineffectiveInARow) expect(after.phase.kind).toBe('ending');
    // Trying to compact, in vain or not, touches no budget of samples, and the other way round.
    if (event.kind === 'compacted') expect(after.tries).toEqual(before.tries);
    if (event.kind !== 'sampled') continue;
    const { outcome } = event;
    if (outcome.kind === 'reply' && !outcome.empty) sinceSuccess = 0;
    if (outcome.kind === 'overflow' && after.phase.kind === 'compacting') sinceSuccess += 1;
    expect(sinceSuccess).toBeLessThanOrEqual(1);
    if (outcome.kind === 'overflow' && before.transition === 'overflow_compacted') {
      expect(after.phase.kind).toBe('ending');
    }
  }
});

always('what was tried in vain is not tried again before the context changed', ({ heard }) => {
  let given: string | null = null;
  for (const { before, event, after } of heard) {
    if (before.phase.kind === 'compacting' && event.kind === 'compacted') expect(before.head).not.toBe(given);
    // A try that rests keeps the transition of the one before it.
    const inVain = after.phase.kind === 'ready' && after.transition === 'not_compacted';
    if (event.kind === 'compacted' && inVain) given = after.head;
  }
});

always(
  'what was cut is taken back at most once, only after a cancel, and then the turn ends',
  ({ steps, cancelled }) => {
    const at = steps.findIndex(({ step }) => step.kind === 'undo');
    if (at === -1) return;
    expect(cancelled).toBe(true);
    expect(steps.slice(at + 1).map(({ step }) => step.kind)).toEqual(['finish']);
  },
);

always('no budget is exceeded', ({ steps, heard, state }) => {
  for (const { state: at, step } of steps) {
    if (step.kind === 'sample') expect(limitReached(at)).toBeNull();
  }
  expect(state.step).toBeLessThanOrEqual(state.limits.maxSteps ?? Infinity);
  for (const failures of betweenReplies(heard)) {
    const count = (...kinds: string[]) => failures.filter((each) => kinds.includes(each.kind)).length;
    const parks = failures.filter(
      (each) => each.kind === 'rate_limited' && (each.quota || (each.afterMs ?? 0) > 120_000),
    );
    const rounds = 1 + PATIENCE.transientDelaysMs.length;
    const retried = count('transport', 'stalled', 'overloaded', 'server_error');
    expect(retried).toBeLessThanOrEqual(PATIENCE.transportAttempts * rounds);
    expect(count('auth')).toBeLessThanOrEqual(PATIENCE.authDelaysMs.length + 1);
    // The last one of each may be the one that ends the turn.
    expect(count('rate_limited') - parks.length).toBeLessThanOrEqual(PATIENCE.rateLimitAttempts + 1);
  }
  for (const { after } of heard) {
    expect(after.tries.parkedMs).toBeLessThanOrEqual(PATIENCE.parkMaxMs);
    expect(after.tries.empty).toBeLessThanOrEqual(POLICY.empty.resamples);
    expect(after.tries.emptyNudges).toBeLessThanOrEqual(POLICY.empty.nudges);
    expect(after.tries.callless).toBeLessThanOrEqual(POLICY.callless.nudges);
    expect(after.outage.inStep).toBeLessThanOrEqual(PATIENCE.transientDelaysMs.length);
    expect(after.outage.inTurn).toBeLessThanOrEqual(PATIENCE.transientPerTurn);
    expect(after.output.continued).toBeLessThanOrEqual(POLICY.length.continuations);
    expect(after.answer.retries).toBeLessThanOrEqual(POLICY.structuredOutput.retries);
    expect(after.contract.reruns).toBeLessThanOrEqual(after.rules.contract?.maxRetries ?? 0);
    expect(after.todoNudges).toBeLessThanOrEqual(POLICY.todoGate.nudges);
    expect(after.tries.doom).toBeLessThanOrEqual(POLICY.doomLoop.resamples);
  }
});

always('one switch of the model a turn, and none back', ({ heard }) => {
  const models = heard.flatMap(({ before, after }) => (before.model === after.model ? [] : [after.model]));
  expect(models.length).toBeLessThanOrEqual(1);
  expect(models).not.toContain('primary');
});

/** Budgets of a turn: what is used of them is never given back. */
const FOR_GOOD: Readonly<Record<string, (state: TurnState) => number>> = {
  outage: ({ outage }) => outage.inTurn,
  answer: ({ answer }) => answer.retries,
  contract: ({ contract }) => contract.reruns,
  todos: ({ todoNudges }) => todoNudges,
  target: ({ target }) => target.continuations,
};

always('nothing gives a budget of the turn back, and using up one leaves the others', ({ heard }) => {
  for (const { before, after } of heard) {
    const spent = Object.entries(FOR_GOOD).filter(([, of]) => of(after) !== of(before));
    for (const [, of] of spent) expect(of(after)).toBe(of(before) + 1);
    expect(spent.length).toBeLessThanOrEqual(1);
  }
});

always('a turn that was cancelled, refused, stationary, out of steps or in error is not opened again', (played) => {
  const { steps, end } = played;
  const isFinal = ['user_cancel', 'refused', 'no_progress', 'max_steps'].includes(end?.detail ?? '');
  if (!end || !(isFinal || end.reason === 'ERROR')) return;
  const at = steps.findIndex(({ state, step }) => step.kind === 'finish' || state.phase.kind === 'ending');
  expect(steps.slice(at).map(({ step }) => step)).toEqual([{ kind: 'finish', end }]);
});

const WAYS: Readonly<Record<string, readonly string[]>> = {
  queued: ['running', 'asking', 'denied', 'fused'],
  asking: ['queued', 'denied', 'fused', 'blocked_on_approval'],
  // A plan may have been set between the gate and the beginning.
  running: ['in_doubt', 'status', 'denied'],
  in_doubt: ['running', 'status'],
};

const NAMED = new Set(['running', 'asking', 'in_doubt', 'queued', 'denied', 'fused', 'blocked_on_approval']);

always('every call of a batch that came back has exactly one status, and began at most once', ({ heard }) => {
  for (const { before, event, after } of heard) {
    if (event.kind === 'batch_returned' && !after.asked && !endingCall(callsOf(before))) {
      expect(callsOf(before).filter((call) => isOpen(call))).toEqual([]);
    }
    const now = callsOf(after);
    if (before.phase.kind !== 'batch' || now.length === 0) continue;
    for (const [ordinal, call] of callsOf(before).entries()) {
      const next = now[ordinal]!.state;
      if (next === call.state) continue;
      // queued → (asking →) running (→ in doubt → running) → one status; a no goes from queued or asking, and nothing
      // that was refused runs.
      const to = NAMED.has(next) ? next : 'status';
      expect(WAYS[call.state]).toContain(to);
    }
  }
});

always('what may not run together never does, and never more than ten', ({ heard }) => {
  for (const { after, event } of heard) {
    if (event.kind !== 'call_started') continue;
    const running = callsOf(after)
      .filter((call) => call.state === 'running')
      .map((call) => call.ref);
    expect(running.length).toBeLessThanOrEqual(POLICY.tools.parallel);
    for (const [at, one] of running.entries()) {
      for (const other of running.slice(at + 1)) expect(mayRunBeside(one, other)).toBe(true);
    }
  }
});

always('calls that conflict begin in the model’s order', ({ heard }) => {
  for (const { before, event } of heard) {
    if (event.kind !== 'call_started' || before.phase.kind !== 'batch') continue;
    const calls = callsOf(before);
    const begins = calls[event.ordinal]!.ref;
    for (const earlier of calls.slice(0, event.ordinal).filter(isOpen)) {
      expect(mayRunBeside(begins, earlier.ref)).toBe(true);
    }
  }
});

always('no input is lost, none is taken twice, all keep their order', ({ arrived, taken, state }) => {
  expect([...taken, ...state.inbox]).toEqual(arrived);
});

always(
  'the stop gate is asked at most eight times, only about a final answer, and its stop is the end',
  ({ heard, end, steps }) => {
    const asks = steps.filter(({ step }) => step.kind === 'stopGate');
    expect(asks.length).toBeLessThanOrEqual(POLICY.stopGate.asksPerTurn);
    for (const { state } of asks) {
      expect(state.phase.kind === 'stop_gate' && state.phase.end).toMatchObject({ detail: 'final_answer' });
    }
    const stopped = heard.some(({ event }) => event.kind === 'stop_gate_answered' && event.verdict.kind === 'stop');
    if (stopped) expect(['hook_stop', 'user_cancel']).toContain(end?.detail);
    else expect(end?.detail).not.toBe('hook_stop');
  },
);

always('results of a batch are owed until a sample has taken them, and once', ({ steps }) => {
  for (const [at, { step }] of steps.entries()) {
    const before = steps[at - 1];
    if (step.kind !== 'sample' || before?.step.kind !== 'runTools') continue;
    expect(step.results).toBe(callsOf(before.state).length);
    const next = steps[at + 1];
    // A call that was taken out of a reply is owed its own result.
    const answers = ['structured_retry', 'input_arrived', 'token_target', 'stop_gate'];
    const isAnswer = answers.includes(next?.state.transition ?? '');
    if (next?.step.kind === 'sample' && !isAnswer) expect(next.step.results).toBe(0);
  }
});

always('the state is plain JSON at any time', ({ heard }) => {
  for (const { after } of heard) {
    const copy: unknown = JSON.parse(JSON.stringify(after));
    expect(isDeepStrictEqual(copy, after) && isDeepStrictEqual(structuredClone(after), after)).toBe(true);
  }
});

// `play` freezes every state and event: a write to one would have thrown.
always('the same state and event give the same state, whatever process they are in', ({ heard }) => {
  for (const { before, event, after } of heard) {
    const replayed = apply(frozen(structuredClone(before)), frozen(structuredClone(event)));
    expect(isDeepStrictEqual(replayed, after)).toBe(true);
  }
});

always(
  'time and usage only grow, but for time in which nobody was there; neither rests nor waits for a person are running time',
  ({ heard }) => {
    for (const { before, event, after } of heard) {
      const grown = after.runningMs - before.runningMs;
      if (!event.away) expect(grown).toBe(isWaiting(before.phase) ? 0 : event.atMs - before.atMs);
      expect(grown).toBeLessThanOrEqual(event.atMs - before.atMs);
      expect(after.runningMs).toBeGreaterThanOrEqual(0);
      expect(after.usage.inputTokens).toBeGreaterThanOrEqual(before.usage.inputTokens);
      expect(after.step - before.step).toBe(isRound(before, event, after) ? 1 : 0);
    }
  },
);

/** What a late yes opened the turn with was a round of the turn before. */
function isRound(before: TurnState, event: TurnEvent, after: TurnState): boolean {
  return event.kind === 'batch_returned' && before.phase.kind === 'batch' && after.phase.kind === 'ready';
}

function callsOf(state: TurnState): readonly BatchCall[] {
  return state.phase.kind === 'batch' ? state.phase.calls : [];
}

function isOpen(call: BatchCall): boolean {
  return call.state === 'queued' || call.state === 'running' || call.state === 'in_doubt';
}

/**
 * The rule in words of its own: nothing beside a blind `once` call, nobody beside a writer of the same thing, nobody
 * who writes in a folder beside whoever reads all of it.
 */
function mayRunBeside(one: CallRef, other: CallRef): boolean {
  const blind = [one, other].some((call) => call.effect === 'once' && call.locks.length === 0);
  const shared = one.locks.filter((lock) => other.locks.some((its) => its.key === lock.key));
  const friendly = shared.every(({ key }) => {
    const modes = [...one.locks, ...other.locks].flatMap((lock) => (lock.key === key ? [lock.mode] : []));
    return !modes.includes('write') && !(modes.includes('read_tree') && modes.includes('write_below'));
  });
  return !blind && friendly;
}

type Outcome = (TurnEvent & { kind: 'sampled' })['outcome'];

/** Failures in runs that no reply broke. */
function betweenReplies(heard: readonly Heard[]): Outcome[][] {
  const runs: Outcome[][] = [[]];
  for (const { event } of heard) {
    if (event.kind !== 'sampled') continue;
    if (event.outcome.kind === 'reply') runs.push([]);
    else runs[runs.length - 1]!.push(event.outcome);
  }
  return runs;
}
