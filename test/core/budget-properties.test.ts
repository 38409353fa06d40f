import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ProviderFailure } from '../../workflows/core/sample-outcome.ts';
import type { Tries, TurnState } from '../../workflows/core/turn-state.ts';
import { always } from './always.ts';
import { play } from './play.ts';

/** The rule in words of its own: what is spent, and of how much. */
const SPENDING = {
  tokens: {
    spent: ({ usage }: TurnState) => usage.inputTokens - usage.cachedTokens + usage.outputTokens,
    of: ({ limits }: TurnState) => limits.maxTokens ?? Infinity,
  },
  // What is not known counts as the most that it may have cost.
  usd: {
    spent: ({ usage }: TurnState) => (usage.microUsd ?? 0) + usage.heldMicroUsd,
    of: ({ limits }: TurnState) => limits.maxMicroUsd ?? Infinity,
  },
  running_ms: {
    spent: ({ runningMs }: TurnState) => runningMs,
    of: ({ limits }: TurnState) => limits.maxRunningMs ?? Infinity,
  },
} as const;

for (const [name, { spent, of }] of Object.entries(SPENDING)) {
  always(`${name}: nobody is asked once they are used up, so only the last request may go past them`, (played) => {
    for (const { state, step } of played.steps) {
      if (step.kind === 'sample' || step.kind === 'compact') expect(spent(state)).toBeLessThan(of(state));
    }
    const over = played.heard.filter(({ before }) => spent(before) >= of(before));
    if (name !== 'running_ms') for (const { before, after } of over) expect(spent(after)).toBe(spent(before));
    const { end } = played;
    if (end?.signal.name !== 'limit' || end.signal.limit !== name) return;
    expect(end.signal.used).toBeGreaterThanOrEqual(end.signal.allowed);
    // The clock goes on until the end is written; what is spent does not.
    if (name === 'running_ms') return;
    const unit = name === 'usd' ? 1_000_000 : 1;
    expect(Math.round(end.signal.used * unit)).toBe(spent(played.state));
    expect(Math.round(end.signal.allowed * unit)).toBe(of(played.state));
  });
}

always('an absolute end is waited past by nothing', ({ steps }) => {
  for (const { state, step } of steps) {
    const { notAfterMs } = state.limits;
    if (notAfterMs === null) continue;
    if (step.kind === 'sample' || step.kind === 'compact') expect(state.atMs).toBeLessThan(notAfterMs);
    if ('forMs' in step && step.kind !== 'undo')
      expect(step.forMs).toBeLessThanOrEqual(Math.max(0, notAfterMs - state.atMs));
  }
});

// Trap: a world that never comes to a limit proves nothing about it.
test('turns of chance do run into each of these', () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(fc.gen(), (pick) => {
      const { end } = play(pick);
      if (end?.signal.name === 'limit') seen.add(end.signal.limit);
    }),
    { numRuns: 400 },
  );
  expect([...seen]).toEqual(expect.arrayContaining(['steps', 'tokens', 'usd', 'running_ms', 'not_after']));
});

/** Every counter of a recovery, by the budget that it belongs to. */
const BUDGETS: Readonly<Record<string, (state: TurnState) => readonly number[]>> = {
  // The row of overloads says when the model is switched; it is no budget.
  transport: ({ tries }) => [tries.transport],
  rateLimit: ({ tries }) => [tries.rateLimit],
  parked: ({ tries }) => [tries.parkedMs],
  auth: ({ tries }) => [tries.auth],
  empty: ({ tries }) => [tries.empty],
  emptyNudges: ({ tries }) => [tries.emptyNudges],
  callless: ({ tries }) => [tries.callless],
  doom: ({ tries }) => [tries.doom],
  cutCalls: ({ tries }) => [tries.cutCalls],
  outage: ({ outage }) => [outage.inStep, outage.inTurn],
  output: ({ output }) => [output.continued],
  compaction: ({ context }) => [context.failed, context.shrinks, context.ineffective],
  overflow: ({ context }) => [Number(context.overflow === 'taken')],
  images: ({ context }) => [Number(context.images === 'stripped')],
  answer: ({ answer }) => [answer.retries],
  contract: ({ contract }) => [contract.reruns],
  todos: ({ todoNudges }) => [todoNudges],
  target: ({ target }) => [target.continuations],
  stopGate: ({ stopGate }) => [stopGate?.asks ?? 0, stopGate?.blocks ?? 0],
};

always('whatever happens spends one budget at most', ({ heard }) => {
  for (const { before, after } of heard) {
    const spent = Object.entries(BUDGETS).filter(([, counters]) => {
      const was = counters(before);
      return counters(after).some((count, n) => count > (was[n] ?? 0));
    });
    expect(spent.map(([name]) => name).slice(1)).toEqual([]);
  }
});

type Try = keyof Tries;
/** Troubles on the way, and those with the model: the latter are not forgotten when the request is made anew. */
const ON_THE_WAY: readonly Try[] = ['transport', 'overloads', 'rateLimit', 'parkedMs', 'auth'];
const WITH_THE_MODEL: readonly Try[] = ['empty', 'emptyNudges', 'callless', 'doom', 'cutCalls'];

/** Which counters a failure may raise: none but its own. */
const OWN: Readonly<Record<ProviderFailure['kind'], readonly Try[]>> = {
  transport: ['transport'],
  stalled: ['transport'],
  server_error: ['transport'],
  overloaded: ['transport', 'overloads', 'parkedMs'],
  rate_limited: ['rateLimit', 'parkedMs'],
  auth: ['auth'],
  doom_loop: ['doom'],
  overflow: [],
  too_large: [],
  invalid_request: [],
};

const risen = (before: TurnState, after: TurnState) => tries(before, (name) => after.tries[name] > before.tries[name]);
const fallen = (before: TurnState, after: TurnState) => tries(before, (name) => after.tries[name] < before.tries[name]);
const tries = (state: TurnState, is: (name: Try) => boolean) => (Object.keys(state.tries) as Try[]).filter(is);

always('a failure spends tries of its own, and gives none back but a row of overloads', ({ heard }) => {
  for (const { before, event, after } of heard) {
    if (event.kind !== 'sampled' || !(event.outcome.kind in OWN)) continue;
    const { kind } = event.outcome as ProviderFailure;
    expect(OWN[kind]).toEqual(expect.arrayContaining(risen(before, after)));
    // Attempts are begun anew by an outage's rest, whose own count bounds it, and by the switch of the model.
    const isAnew = after.outage.inTurn > before.outage.inTurn || after.model !== before.model;
    const given = fallen(before, after).filter((name) => name !== 'overloads' && !(isAnew && name === 'transport'));
    expect(given).toEqual([]);
  }
});

always('a request that is made anew forgets troubles on the way, never those with the model', ({ heard }) => {
  for (const { before, event, after } of heard) {
    if (event.kind !== 'sampled' || event.outcome.kind !== 'reply' || after.resample === before.resample) continue;
    expect(ON_THE_WAY).toEqual(expect.arrayContaining(fallen(before, after)));
    expect(risen(before, after).every((name) => WITH_THE_MODEL.includes(name))).toBe(true);
  }
});

always('nothing but a sample spends the tries of a sample', ({ heard }) => {
  for (const { before, event, after } of heard) {
    if (event.kind !== 'sampled') expect(risen(before, after)).toEqual([]);
  }
});
