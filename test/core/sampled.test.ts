import { describe, expect, test } from 'vitest';
import { apply } from '../../workflows/core/apply.ts';
import type { End } from '../../workflows/core/ends.ts';
import { NO_USAGE, type SampleOutcome } from '../../workflows/core/sample-outcome.ts';
import type { TurnEvent } from '../../workflows/core/turn-event.ts';
import { FRESH_TRIES, type TurnState } from '../../workflows/core/turn-state.ts';
import { addUsage } from '../../workflows/core/usage.ts';
import { changed, COMPLETED, endOf, ref, reply, T0, turn, USAGE } from './fixtures.ts';

const sampled = (outcome: SampleOutcome): TurnEvent => ({ kind: 'sampled', outcome, drained: 1, dice: 0.5, atMs: T0 });

describe('a sample', () => {
  // What its first commit took in is on the chain: the same results, inputs and reminders may not go there again.
  const taken = { head: 'h1', inbox: [], unappendedResults: 0, reminders: [], usage: USAGE };
  const before = turn({ unappendedResults: 2, reminders: ['todo'], transition: 'tool_results', step: 3 });

  test.each<[name: string, state: TurnState, outcome: SampleOutcome, change: Partial<TurnState>]>([
    ['a final answer ends the turn', before, reply(), { ...taken, phase: { kind: 'ending', end: COMPLETED } }],
    [
      'calls open a batch; a call that is answered already is not run',
      before,
      reply({ finish: 'tool_calls', calls: [ref(0), ref(1, { verdict: 'answered' })] }),
      {
        ...taken,
        phase: {
          kind: 'batch',
          calls: [
            { ref: ref(0), state: 'queued' },
            { ref: ref(1, { verdict: 'answered' }), state: 'error' },
          ],
          fuse: null,
        },
      },
    ],
    [
      // Trap: the finish reason is the provider's word; only whether calls exist decides.
      'calls count though the stream says stop, or was filtered',
      before,
      reply({ finish: 'content_filter', calls: [ref(0)] }),
      { ...taken, phase: { kind: 'batch', calls: [{ ref: ref(0), state: 'queued' }], fuse: null } },
    ],
    [
      'an empty reply is asked for again, with other bytes',
      before,
      reply({ empty: true }),
      { ...taken, resample: 1, tries: { ...FRESH_TRIES, empty: 1 }, transition: 'resampled_empty' },
    ],
    [
      'a success gives the retry budgets back, an empty reply keeps its own',
      turn({ inbox: [], tries: { transport: 9, auth: 2, rateLimit: 1, parkedMs: 5, empty: 1, doom: 2, cutCalls: 3 } }),
      reply({ empty: true }),
      {
        head: 'h1',
        usage: USAGE,
        resample: 1,
        tries: { ...FRESH_TRIES, empty: 2, doom: 2, cutCalls: 3 },
        transition: 'resampled_empty',
      },
    ],
    [
      'a message that came meanwhile goes on in the same turn',
      turn({ inbox: ['in_1', 'in_2', 'in_3'], tries: { empty: 2 } }),
      reply(),
      { head: 'h1', inbox: ['in_2', 'in_3'], usage: USAGE, tries: FRESH_TRIES, transition: 'input_arrived' },
    ],
    [
      'a cut stream that appended nothing leaves the inbox',
      before,
      { kind: 'cut', head: 'h0', usage: NO_USAGE },
      { resample: 1, transition: 'message_cut_in' },
    ],
    [
      'a cut stream whose appends were committed does not append them again',
      before,
      { kind: 'cut', head: 'h9', usage: { ...USAGE, complete: false } },
      {
        ...taken,
        head: 'h9',
        usage: addUsage(before.usage, { ...USAGE, complete: false }),
        resample: 1,
        transition: 'message_cut_in',
      },
    ],
  ])('%s', (_name, state, outcome, change) => {
    expect(changed(state, apply(state, sampled(outcome)))).toEqual(dropSame(state, change));
  });

  test.each<[name: string, state: TurnState, outcome: SampleOutcome, end: Partial<End>]>([
    ['filtered', turn(), reply({ finish: 'content_filter' }), { detail: 'refused', decidedBy: 'model' }],
    [
      // A refusal is final even with something waiting: the waiting message starts the next turn.
      'filtered, with a message waiting',
      turn({ inbox: ['in_1', 'in_2'] }),
      reply({ finish: 'content_filter' }),
      { detail: 'refused' },
    ],
    [
      'empty a third time',
      turn({ tries: { empty: 2 } }),
      reply({ empty: true }),
      {
        reason: 'ERROR',
        detail: 'model',
        signal: { name: 'retries_spent', cause: 'empty_reply', used: 2 },
      },
    ],
    [
      'cut by its length, in as many pieces as there may be',
      turn({ limits: { outputTokens: 64, raisedOutputTokens: 64 }, output: { cap: 'usual', continued: 3 } }),
      reply({ finish: 'length' }),
      {
        reason: 'MAX_TOKENS',
        detail: 'output_limit',
        signal: { name: 'limit', limit: 'output_tokens', allowed: 64, used: 64 },
      },
    ],
    [
      'no room',
      turn({ limits: { contextTokens: 900 } }),
      { kind: 'no_room', head: 'h0', estimateTokens: 899 },
      {
        reason: 'MAX_TOKENS',
        detail: 'context_limit',
        signal: { name: 'limit', limit: 'context_tokens', allowed: 900, used: 899 },
      },
    ],
    [
      'too many attempts lost',
      turn(),
      { kind: 'attempts_lost', head: 'h0', attempts: 10 },
      {
        reason: 'ERROR',
        detail: 'internal',
        signal: { name: 'retries_spent', cause: 'attempts_lost', used: 10 },
      },
    ],
    [
      'a sixth cut call in a row',
      turn({ tries: { cutCalls: 5 } }),
      reply({ finish: 'length', calls: [ref(0)] }),
      {
        reason: 'ERROR',
        detail: 'model',
        signal: { name: 'retries_spent', cause: 'cut_calls', used: 6 },
      },
    ],
  ])('%s: the end that has its name', (_name, state, outcome, end) => {
    expect(endOf(apply(state, sampled(outcome)))).toMatchObject(end);
  });

  test('five steps with cut calls in a row go on; one whole step starts the count again', () => {
    const cut = reply({ finish: 'length', calls: [ref(0)] });
    expect(apply(turn({ tries: { cutCalls: 4 } }), sampled(cut))).toMatchObject({
      phase: { kind: 'batch' },
      tries: { cutCalls: 5 },
    });
    expect(apply(turn({ tries: { cutCalls: 5 } }), sampled(reply({ calls: [ref(0)] })))).toMatchObject({
      tries: { cutCalls: 0 },
    });
  });
});

/** The fields of a change that are one. */
function dropSame(before: TurnState, change: Partial<TurnState>): Partial<TurnState> {
  return changed(before, { ...before, ...change });
}
