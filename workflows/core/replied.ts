import { endOfReply } from './endings.ts';
import { prepareEnd } from './ending-checks/run-checks.ts';
import { ending } from './going-on.ts';
import { POLICY } from './policy.ts';
import { calllessReply } from './recovering/callless.ts';
import { emptyReply } from './recovering/empty.ts';
import { endedNormally, lengthStop } from './recovering/length.ts';
import type { Reply } from './sample-outcome.ts';
import { type BatchCall, FRESH_TRIES, type TurnState } from './turn-state.ts';

/** In this order: what a reply without calls needs before it can be an answer. Null: nothing. */
const RECOVERIES: readonly ((state: TurnState, reply: Reply) => TurnState | null)[] = [
  lengthStop,
  refusal,
  emptyReply,
  calllessReply,
];

/** A reply: its calls run, or it is looked at as the answer that it may be. */
export function replied(before: TurnState, reply: Reply): TurnState {
  const state: TurnState = {
    ...before,
    outage: { ...before.outage, sinceMs: null },
    output: reply.finish === 'length' || reply.empty ? before.output : endedNormally(before.output),
    unappendedResults: reply.structured?.results ?? 0,
  };
  if (reply.calls.length > 0) return calling(state, reply);
  for (const recover of RECOVERIES) {
    const next = recover(state, reply);
    if (next) return next;
  }
  return prepareEnd(state, reply);
}

function refusal(state: TurnState, reply: Reply): TurnState | null {
  // An answer that was handed in by a call counts, as any call does.
  const isHandedIn = reply.structured?.verdict === 'valid' && reply.structured.results > 0;
  return reply.finish === 'content_filter' && !isHandedIn ? ending(state, endOfReply(state, 'refused')) : null;
}

function calling(state: TurnState, reply: Reply): TurnState {
  const cutCalls = reply.finish === 'length' ? state.tries.cutCalls + 1 : 0;
  const calls = reply.calls.map((ref): BatchCall => ({ ref, state: ref.verdict === 'answered' ? 'error' : 'queued' }));
  const next: TurnState = {
    ...state,
    tries: { ...FRESH_TRIES, cutCalls },
    phase: { kind: 'batch', calls, fuse: null },
  };
  return cutCalls > POLICY.cutCalls.stepsInARow ? ending(next, endOfReply(next, 'cut_calls')) : next;
}
