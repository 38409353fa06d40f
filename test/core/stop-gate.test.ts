import { describe, expect, it } from 'vitest';
import { apply } from '../../workflows/core/apply.ts';
import type { StopVerdict } from '../../workflows/core/gate.ts';
import { nextStep } from '../../workflows/core/next-step.ts';
import { POLICY } from '../../workflows/core/policy.ts';
import type { TurnState } from '../../workflows/core/turn-state.ts';
import { CANCELLED, changed, COMPLETED, endOf, ref, reply, T0, turn } from './fixtures.ts';

const AT = { atMs: T0 } as const;
const open = turn({ inbox: [] });

function sampled(state: TurnState, change: Parameters<typeof reply>[0] = {}): TurnState {
  const outcome = reply({ stopGate: true, ...change });
  return apply(state, { kind: 'sampled', outcome, drained: state.inbox.length, dice: 0, ...AT });
}
const answered = (state: TurnState, verdict: StopVerdict) =>
  apply(state, { kind: 'stop_gate_answered', verdict, ...AT });

describe('a final answer', () => {
  it('goes to the stop gate, with how often it was asked and has blocked', () => {
    const asked = sampled(open);
    expect(asked.phase).toEqual({ kind: 'stop_gate', end: COMPLETED });
    expect(nextStep(asked, T0)).toEqual({ kind: 'stopGate', asks: 1, blocks: 0 });
  });

  it('ends the turn at once where nobody wants to be asked', () => {
    const { stopGate: _nobody, ...plain } = reply();
    expect(endOf(apply(open, { kind: 'sampled', outcome: plain, drained: 0, dice: 0, ...AT }))).toEqual(COMPLETED);
  });

  // Section 5: each of these is decided before the gate.
  it.each([
    ['a refusal', { finish: 'content_filter' }, 'COMPLETED refused'],
    ['an answer cut by the output limit', { finish: 'length' }, 'MAX_TOKENS output_limit'],
  ] as const)('that is %s is not asked about', (_, change, end) => {
    const salvaged = { ...open, output: { cap: 'raised', continued: 3 } } as const;
    const { reason, detail } = endOf(sampled(salvaged, change)) ?? {};
    expect(`${reason} ${detail}`).toBe(end);
  });

  it('is not asked about while a message waits, nor where there are calls', () => {
    const waiting = apply(open, { kind: 'inputs_arrived', inputs: ['in_2'], ...AT });
    const went = apply(waiting, { kind: 'sampled', outcome: reply({ stopGate: true }), drained: 0, dice: 0, ...AT });
    expect([went.phase.kind, went.transition]).toEqual(['ready', 'input_arrived']);
    expect(sampled(open, { calls: [ref(0)] }).phase.kind).toBe('batch');
  });
});

describe('the answer of the gate', () => {
  const asked = sampled(open);

  it('pass: the turn ends as it was about to', () => {
    expect(endOf(answered(asked, { kind: 'pass' }))).toEqual(COMPLETED);
  });

  it('pass, and a message came meanwhile: it goes to the model first', () => {
    const told = apply(asked, { kind: 'inputs_arrived', inputs: ['in_2'], ...AT });
    const went = answered(told, { kind: 'pass' });
    expect([went.phase.kind, went.transition]).toEqual(['ready', 'input_arrived']);
    expect(nextStep(went, T0)).toMatchObject({ kind: 'sample', inputs: ['in_2'] });
  });

  it('block: the loop goes on from the chain that has the reason', () => {
    expect(changed(asked, answered(asked, { kind: 'block', head: 'h2' }))).toEqual({
      phase: { kind: 'ready' },
      head: 'h2',
      stopGate: { asks: 1, blocks: 1 },
      transition: 'stop_gate',
    });
  });

  it('stop: the turn ends ABORTED, by the hook', () => {
    expect(endOf(answered(asked, { kind: 'stop', hook: 'StopGate 1' }))).toEqual({
      reason: 'ABORTED',
      detail: 'hook_stop',
      decidedBy: 'runtime',
      signal: { name: 'hook', id: 'StopGate 1' },
      phase: 'ending',
    });
  });

  it('of a turn that was cancelled meanwhile changes nothing: the cancel is the end', () => {
    const cancelled = apply(asked, { kind: 'cancel_requested', ...AT });
    for (const verdict of [{ kind: 'pass' }, { kind: 'block', head: 'h2' }] as const) {
      const step = nextStep(answered(cancelled, verdict), T0);
      expect(step).toEqual({ kind: 'finish', end: { ...CANCELLED, phase: 'ending' } });
    }
  });

  it('that nobody asked for is not heard', () => {
    expect(answered(open, { kind: 'stop', hook: 'StopGate 1' })).toEqual(open);
  });

  // A gate that never lets go must not hold a turn for ever.
  it('is heard eight times a turn, whatever comes between; then no hook is asked', () => {
    let state = open;
    let asks = 0;
    for (; sampled(state).phase.kind === 'stop_gate'; asks += 1) {
      const head = `h${asks + 2}`;
      const verdict: StopVerdict = asks % 2 === 0 ? { kind: 'block', head } : { kind: 'pass' };
      const told = apply(sampled(state), { kind: 'inputs_arrived', inputs: [`in_${asks + 2}`], ...AT });
      state = answered(told, verdict);
      expect(state.phase.kind).toBe('ready');
    }
    expect(asks).toBe(POLICY.stopGate.asksPerTurn);
    expect(endOf(sampled(state))).toEqual(COMPLETED);
  });
});
