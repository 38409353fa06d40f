import { describe, expect, it, test } from 'vitest';
import {
  agentSessionId,
  cascadeOf,
  depthOf,
  inheritedLimits,
  leased,
  leaseOf,
  toolsAtDepth,
} from '../../workflows/core/agents.ts';
import { apply } from '../../workflows/core/apply.ts';
import type { End } from '../../workflows/core/ends.ts';
import { limitReached } from '../../workflows/core/limits.ts';
import { nextStep } from '../../workflows/core/next-step.ts';
import { DEFAULT_LIMITS, POLICY } from '../../workflows/core/policy.ts';
import { waitCode, waitingFor } from '../../workflows/core/waiting.ts';
import type { BatchCall } from '../../workflows/core/turn-state.ts';
import { changed, ref, reply, T0, turn } from './fixtures.ts';

describe('the names of sub-agents', () => {
  test.each([
    ['ses_1', 0],
    [agentSessionId('ses_1', 1), 1],
    [agentSessionId(agentSessionId('ses_1', 2), 12), 2],
  ])('%s is %i deep', (session, depth) => expect(depthOf(session)).toBe(depth));

  it('tell where nothing more may be started', () => {
    const tools = ['shell', 'spawn_agent', 'wait_agents'];
    const deep = (depth: number): string => (depth === 0 ? 'ses_1' : agentSessionId(deep(depth - 1), 1));
    expect(toolsAtDepth(deep(POLICY.subAgents.depth - 1), tools)).toEqual(tools);
    expect(toolsAtDepth(deep(POLICY.subAgents.depth), tools)).toEqual(['shell']);
  });
});

describe('a lease', () => {
  const none = { tokens: null, microUsd: null };
  const open = { maxTokens: null, maxMicroUsd: null };
  const tokens = (maxTokens: number | null) => ({ maxTokens, maxMicroUsd: null });
  const nothing = { tokens: 0, microUsd: 0 };
  const spent = (used: number) => ({ tokens: used, microUsd: 0 });
  const given = (amount: number | null, microUsd: number | null = null) => ({
    kind: 'given',
    lease: { tokens: amount, microUsd },
  });

  // A shared pool starves the children; a budget of their own for each goes far over the parent's.
  test.each([
    ['all that was asked for', tokens(90), spent(30), 50, open, given(50)],
    ['no more than its own definition allows', tokens(90), spent(30), 50, tokens(20), given(20)],
    ['half of what is left, where nobody asks', tokens(100), spent(30), null, open, given(30)],
    ['its own limit, where that is less', tokens(100), spent(30), null, tokens(10), given(10)],
    ['what was asked for, where there is no budget', open, spent(30), 50, open, given(50)],
    ['its own limit, where there is no budget', open, nothing, null, tokens(70), given(70)],
    ['no limit, where nobody has one', open, nothing, null, open, given(null)],
  ] as const)('is %s', (_, limits, used, asked, own, expected) => {
    expect(leaseOf({ limits, spent: used, asked: { ...none, tokens: asked }, own })).toEqual(expected);
  });

  test.each([
    ['more than is left', tokens(90), spent(80), 50, { budget: 'tokens', asked: 50, available: 1 }],
    ['what is kept for the last words', tokens(100), spent(90), null, { budget: 'tokens', asked: null, available: 0 }],
    ['a rest that is spent', tokens(100), spent(400), 1, { budget: 'tokens', asked: 1, available: 0 }],
  ] as const)('is refused for %s, with the numbers', (_, limits, used, asked, expected) => {
    expect(leaseOf({ limits, spent: used, asked: { ...none, tokens: asked }, own: open })).toEqual({
      kind: 'refused',
      ...expected,
    });
  });

  it('never comes to more than the budget, however many there are', () => {
    let used = 30;
    const grants: number[] = [];
    for (let n = 0; n < 20; n += 1) {
      const asked = n % 3 === 0 ? 50 : n % 3 === 1 ? 7 : null;
      const one = leaseOf({ limits: tokens(90), spent: spent(used), asked: { ...none, tokens: asked }, own: open });
      if (one.kind === 'refused') continue;
      grants.push(one.lease.tokens ?? 0);
      used += one.lease.tokens ?? 0;
    }
    expect(grants.length).toBeGreaterThan(0);
    expect(used).toBeLessThanOrEqual(81);
  });

  it('of money is refused for the fourth of four that ask for 0.30 out of 1.00', () => {
    const limits = { maxTokens: null, maxMicroUsd: 1_000_000 };
    const kinds = [0, 1, 2, 3].map(
      (n) =>
        leaseOf({
          limits,
          spent: { tokens: 0, microUsd: n * 300_000 },
          asked: { ...none, microUsd: 300_000 },
          own: open,
        }).kind,
    );
    expect(kinds).toEqual(['given', 'given', 'given', 'refused']);
  });

  it('makes the limits of a turn smaller, never larger', () => {
    const limits = { ...DEFAULT_LIMITS, maxTokens: 100 };
    expect(leased(limits, { tokens: 50, microUsd: 9 })).toEqual({ ...limits, maxTokens: 50, maxMicroUsd: 9 });
    expect(leased(limits, { tokens: 500, microUsd: null })).toEqual(limits);
  });
});

describe('limits that a definition does not name', () => {
  const parent = { ...DEFAULT_LIMITS, maxSteps: 7, maxTokens: 70, maxRunningMs: null, notAfterMs: 500 };

  it('are those of whoever starts it', () => {
    expect(inheritedLimits(DEFAULT_LIMITS, ['maxTokens'], parent)).toEqual({
      ...DEFAULT_LIMITS,
      maxSteps: 7,
      maxRunningMs: null,
      notAfterMs: 500,
    });
  });

  // Only an attended agent may be endless, and what it starts is not more attended than itself.
  it('are finite where the parent’s are, also where the definition names none', () => {
    expect(inheritedLimits({ ...DEFAULT_LIMITS, maxSteps: null }, ['maxSteps'], parent).maxSteps).toBe(7);
  });
});

describe('the end of a turn', () => {
  const end = (reason: End['reason'], detail: End['detail']) => ({ reason, detail });
  const child = agentSessionId('ses_1', 1);

  test.each([
    ['COMPLETED', 'final_answer', 'ses_1', 'foreground'],
    ['BLOCKED', 'awaiting_input', 'ses_1', 'foreground'],
    ['ERROR', 'model', 'ses_1', 'foreground'],
    ['ABORTED', 'user_cancel', 'ses_1', 'all'],
    ['ABORTED', 'budget', 'ses_1', 'all'],
    ['INTERRUPTED', 'terminated', 'ses_1', 'all'],
    ['INTERRUPTED', 'lost', 'ses_1', 'foreground'],
    ['COMPLETED', 'final_answer', child, 'all'],
    ['ERROR', 'model', child, 'all'],
  ] as const)('%s/%s of %s cancels: %s', (reason, detail, session, which) => {
    expect(cascadeOf(end(reason, detail), session)).toBe(which);
  });
});

describe('a turn with sub-agents', () => {
  const limits = { maxTokens: 1_000, maxMicroUsd: 500 };
  const count = (version: number, tokens: number, microUsd = 0) => ({ version, tokens, microUsd });

  it('counts what they hold and what they spent as spent', () => {
    expect(limitReached(turn({ limits, agents: count(1, 999) }))).toBeNull();
    expect(limitReached(turn({ limits, agents: count(1, 1_000) }))).toMatchObject({
      detail: 'budget',
      signal: { limit: 'tokens', used: 1_000 },
    });
    expect(limitReached(turn({ limits, agents: count(1, 0, 500) }))).toMatchObject({ signal: { limit: 'usd' } });
  });

  // Two looks at once may come back in the wrong order.
  it('believes the newest count, whichever comes last', () => {
    const state = turn({ agents: count(2, 20) });
    const heard = (version: number) =>
      changed(state, apply(state, { kind: 'agents_counted', atMs: T0, agents: count(version, 5) }));
    expect(heard(1)).toEqual({});
    expect(heard(3)).toEqual({ agents: count(3, 5) });
  });

  it('hears of returned leases with each sample', () => {
    const state = turn({ agents: count(1, 1_000), limits: { maxTokens: 5_000 } });
    const outcome = { ...reply(), agents: count(2, 110) };
    expect(apply(state, { kind: 'sampled', atMs: T0, outcome, drained: 0, dice: 0 }).agents).toEqual(count(2, 110));
  });

  const waits = (change: Partial<BatchCall['ref']>): BatchCall => ({
    ref: ref(0, change),
    state: 'waiting',
    approval: 'ses_1/agent/1',
    untilMs: T0 + 5,
  });

  test.each([
    [{ tool: 'spawn_agent', runs: 'child' }, 'agent'],
    [{ tool: 'wait_agents', runs: 'wait' }, 'agent'],
    [{ tool: 'ask_user', runs: 'wait' }, 'input'],
    [{ tool: 'wait_for', runs: 'wait' }, 'event'],
  ] as const)('that waits by %o shows: %s', (change, code) => {
    const wait = waitingFor(turn({ phase: { kind: 'batch', calls: [waits(change)], fuse: null } }));
    expect(wait && waitCode(wait)).toBe(code);
  });

  it('is told by name which one has ended, and looks', () => {
    const calls = [waits({ runs: 'child' })];
    const state = turn({ phase: { kind: 'batch', calls, fuse: null } });
    const told = apply(state, { kind: 'answer_arrived', atMs: T0, approval: 'ses_1/agent/1' });
    expect(told.phase).toMatchObject({ calls: [{ state: 'waiting', untilMs: 0 }] });
    expect(nextStep(told, T0)).toEqual({ kind: 'runTools' });
  });

  it('that starts the same one again and again is no reader', () => {
    const batch = () => ({
      kind: 'batch' as const,
      calls: [{ ref: ref(0, { tool: 'spawn_agent', runs: 'child' }), state: 'ok' as const }],
      fuse: null,
    });
    const after = apply(turn({ phase: batch() }), { kind: 'batch_returned', atMs: T0 });
    expect(after.repeats.tier).toBe('others');
  });
});
