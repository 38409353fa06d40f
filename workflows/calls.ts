import { CancellationScope, condition, isCancellation, TemporalFailure } from '@temporalio/workflow';
import { endingCall, startable } from './core/batch.ts';
import { type Came, cameOf } from './core/delayed.ts';
import type { WaitLook } from './core/gate.ts';
import { absoluteEnd, withinTurn } from './core/limits.ts';
import type { Step } from './core/next-step.ts';
import { POLICY } from './core/policy.ts';
import type { Purpose, RunToolRequest, WaitRequest } from './core/requests.ts';
import type { CallRef, CallStatus, OutcomeAsked } from './core/tools.ts';
import type { TurnEvent } from './core/turn-event.ts';
import { assistantOf, callsOf, type TurnState } from './core/turn-state.ts';
import { cutsReaders } from './core/urgent.ts';
import { cancelRequested, eventOfFailure } from './cancellation.ts';
import { cutShort } from './cut-short.ts';
import { fenceOf } from './fence.ts';
import { firstOf } from './first-of.ts';
import type { TurnArgs } from './messages.ts';
import { actingOn, atOnce, store, undoing } from './activities.ts';

/** What the loop records: an event without its time. */
export type Heard = TurnEvent extends infer E ? (E extends TurnEvent ? Omit<E, 'atMs'> : never) : never;

/** The loop's variables, for the functions that take a step. */
export interface Turn {
  readonly args: TurnArgs;
  state(): TurnState;
  record(heard: Heard): void;
  recordStep(heard: Heard): void;
}

/**
 * Runs what may run, looks again after each call that came back, until the batch is done, cut, or broken.
 * What runs is always waited for: an end never leaves a result outside the transcript.
 */
export async function runBatch(turn: Turn): Promise<Heard> {
  const running = new Map<number, Promise<CallHeard>>();
  let broken: CallHeard['heard'] | null = null;
  for (;;) {
    for (const call of cancelRequested() || broken ? [] : startable(callsNow(turn))) {
      turn.record({ kind: 'call_started', ordinal: call.ordinal });
      running.set(call.ordinal, call.runs === 'activity' ? runCall(turn, call) : runWait(turn, call));
    }
    if (broken || endingCall(callsNow(turn))) dropWaits(turn, running);
    if (running.size === 0) return broken ?? { kind: 'batch_returned' };
    const { ordinal, heard } = await firstOf([...running.values()]);
    running.delete(ordinal);
    if (heard.kind === 'failed') broken ??= heard;
    else turn.record(heard);
  }
}

/** What is going to end has nothing to wait for; only what acts is waited for. */
function dropWaits(turn: Turn, running: Map<number, unknown>): void {
  for (const { ref, state } of callsNow(turn)) {
    if (ref.runs !== 'activity' || state === 'in_doubt') running.delete(ref.ordinal);
  }
}

interface CallHeard {
  readonly ordinal: number;
  readonly heard: Heard & { kind: 'call_finished' | 'failed' };
}

export function callsNow(turn: Turn) {
  return callsOf(turn.state().phase);
}

/** Makes a call. Where nobody knows what became of it and a person is asked, their word goes back to it. */
async function runCall(turn: Turn, call: CallRef): Promise<CallHeard> {
  const { ordinal } = call;
  try {
    for (;;) {
      const { came, away } = await make(turn, call);
      if (typeof came === 'string') return { ordinal, heard: { kind: 'call_finished', ordinal, status: came, away } };
      turn.record({ kind: 'outcome_asked', ordinal, approval: came.approval, untilMs: came.untilMs, away });
      const forMs = leftOf(withinTurn(turn.state(), came.untilMs));
      await condition(() => isAnswered(turn, ordinal), forMs, { summary: `call ${ordinal} is in doubt` });
      const isUnanswered = isTimeOver(turn) && !isAnswered(turn, ordinal);
      if (isUnanswered) return { ordinal, heard: { kind: 'call_finished', ordinal, status: 'unknown' } };
      turn.record({ kind: 'outcome_heard', ordinal });
    }
  } catch (error) {
    if (!isCancellation(error)) return { ordinal, heard: eventOfFailure(error) };
    // While it still waits: the end names the phase in which the cancel came.
    turn.record({ kind: 'cancel_requested' });
    const inDoubt = callsNow(turn).some((each) => each.ref.ordinal === ordinal && each.state === 'in_doubt');
    return { ordinal, heard: { kind: 'call_finished', ordinal, status: inDoubt ? 'unknown' : 'not_started' } };
  }
}

/** A reader is cut by a message that can't wait, but for the moments that a quick one has; what acts is not. */
async function make(
  turn: Turn,
  { ordinal, tool, effect, argsHash, quick }: CallRef,
): Promise<Came<CallStatus | OutcomeAsked>> {
  const asked = { fence: fenceOf(turn.args), assistant: assistantOf(turn.state()), ordinal, tool, effect, argsHash };
  const as = (purpose: Purpose) => ({ ...asked, purpose });
  const isCut = () => effect === 'none' && cutsReaders(turn.state());
  const came = quick && !isCut() ? await quickly(as('ask')) : null;
  if (came !== null) return { came, away: [] };
  const ask = () => actingOn(turn.args).runTool.executeWithOptions({ summary: tool }, [as('ask')]);
  if (effect !== 'none') return cameOf(await ask());
  // Any worker can settle: nothing is read any more.
  const settle = () => store.runTool.executeWithOptions({ summary: tool }, [as('settle')]);
  return cameOf(await cutShort(isCut, ask, settle));
}

/** Null: something kept it from answering in time, and the usual way is taken. */
async function quickly(request: RunToolRequest): Promise<CallStatus | null> {
  try {
    const came = await atOnce.runTool(request);
    return typeof came === 'string' ? came : null;
  } catch (error) {
    // When it is replayed, a time-out comes bare: an ActivityFailure is it only the first time.
    if (error instanceof TemporalFailure && !isCancellation(error)) return null;
    throw error;
  }
}

/** Until then; where the store's clock is behind, a moment more. */
function leftOf(untilMs: number): number {
  const leftMs = untilMs - Date.now();
  return leftMs > 0 ? leftMs : POLICY.waits.skewMs;
}

/** The turn's absolute end is over: it waits for nobody any more. */
function isTimeOver(turn: Turn): boolean {
  return absoluteEnd(turn.state(), Date.now()) !== null;
}

/** What a call waits for has been answered. */
function isAnswered(turn: Turn, ordinal: number): boolean {
  return callsNow(turn).some((call) => call.ref.ordinal === ordinal && 'untilMs' in call && call.untilMs === 0);
}

/** A wait holds no slot: a condition and a timer, with a look into the store when something may have changed. */
async function runWait(turn: Turn, { ordinal, runs }: CallRef): Promise<CallHeard> {
  const request = { fence: fenceOf(turn.args), assistant: assistantOf(turn.state()), ordinal };
  // A message is no reason to leave a sub-agent alone that this call has started.
  const isInterrupted = () => runs === 'wait' && turn.state().inbox.length > 0;
  try {
    for (;;) {
      const seen = await store.lookAtWait({ ...request, interrupted: isInterrupted() });
      if (seen.agents) turn.record({ kind: 'agents_counted', agents: seen.agents });
      if (seen.kind === 'over') return { ordinal, heard: overOf(ordinal, seen) };
      turn.record({ kind: 'wait_seen', ordinal, wait: seen.wait, untilMs: seen.untilMs });
      // A sub-agent has the same absolute end, and its end is the result.
      const isOwn = runs === 'wait';
      if (isOwn && isTimeOver(turn)) return { ordinal, heard: { kind: 'call_finished', ordinal, status: 'stopped' } };
      const forMs = leftOf(isOwn ? withinTurn(turn.state(), seen.untilMs) : seen.untilMs);
      const isOver = () => isInterrupted() || isAnswered(turn, ordinal);
      await condition(isOver, forMs, { summary: `call ${ordinal} waits` });
    }
  } catch (error) {
    if (!isCancellation(error)) return { ordinal, heard: eventOfFailure(error) };
    // While it still waits: the end names the phase in which the cancel came.
    turn.record({ kind: 'cancel_requested' });
    const status = runs === 'child' ? await stopped(request) : 'stopped';
    return { ordinal, heard: { kind: 'call_finished', ordinal, status } };
  }
}

function overOf(ordinal: number, { status, stillRuns }: WaitLook & { kind: 'over' }): CallHeard['heard'] {
  return { kind: 'call_finished', ordinal, status, ...(stillRuns && { stillRuns }) };
}

/** Its sub-agent is cancelled with the turn; one that has ended in that moment has a result. */
async function stopped(request: Omit<WaitRequest, 'interrupted'>): Promise<CallStatus> {
  try {
    const seen = await CancellationScope.nonCancellable(() =>
      store.lookAtWait({ ...request, interrupted: false, cancelled: true }),
    );
    return seen.kind === 'over' ? seen.status : 'stopped';
  } catch {
    // The turn's own end cancels it too.
    return 'stopped';
  }
}

/** Takes back what the cancel cut; an undo that fails or does not come back in time is in the ledger, and stops nothing. */
export async function undo(turn: Turn, { ordinals, forMs }: Step & { kind: 'undo' }): Promise<Heard> {
  const { undoCall } = undoing(turn.args.workspaceQueue, forMs);
  const assistant = assistantOf(turn.state());
  await CancellationScope.nonCancellable(() =>
    Promise.allSettled(ordinals.map((ordinal) => undoCall({ fence: fenceOf(turn.args), assistant, ordinal, forMs }))),
  );
  return { kind: 'undo_over' };
}
