import { CancellationScope, condition, continueAsNew, isCancellation, setHandler, sleep } from '@temporalio/workflow';
import { apply } from './core/apply.ts';
import { compact } from './compact.ts';
import { mayCompact } from './core/compaction.ts';
import { cameOf } from './core/delayed.ts';
import { contractMark } from './core/ending-checks/contract.ts';
import { answered } from './core/ending-checks/structured-output.ts';
import { type End, engineStatusOf } from './core/ends.ts';
import { nextStep, type Step } from './core/next-step.ts';
import { POLICY } from './core/policy.ts';
import type { Purpose } from './core/requests.ts';
import { NO_USAGE, type SampleOutcome } from './core/sample-outcome.ts';
import type { TurnEvent } from './core/turn-event.ts';
import { callsOf, type TurnState } from './core/turn-state.ts';
import { cutsRest, pressing } from './core/urgent.ts';
import { cancelHeard, cancelRequested, eventOfFailure, turnFailure } from './cancellation.ts';
import { answerWaits, approvalAnswered, forward, type TurnArgs, turnState } from './messages.ts';
import { actingOn, store } from './activities.ts';
import { callsNow, type Heard, runBatch, type Turn, undo } from './calls.ts';
import { cutShort } from './cut-short.ts';
import { fenceOf } from './fence.ts';
import { isHistoryLong } from './history.ts';
import { rest } from './rest.ts';
import { askStopGate } from './stop-gate.ts';
import { showEnd, showWait } from './visible.ts';

/** One prompt-scoped run of steps. The decisions are in core/; here they meet the engine. */
export async function turnWorkflow(args: TurnArgs): Promise<void> {
  let state = args.state;
  let shown: string | null = null;
  const record = (heard: Heard) => {
    state = apply(state, { ...heard, atMs: Date.now() } as TurnEvent);
    shown = showWait(shown, state);
  };
  // A cancel that came while a step ran is older than what the step brings, and wins over an end in it.
  const recordStep = (heard: Heard) => {
    if (cancelRequested()) record({ kind: 'cancel_requested' });
    record(heard);
  };
  setHandler(forward, (inputs, urgent = []) => record({ kind: 'inputs_arrived', inputs, urgent }));
  setHandler(answerWaits, (approval) => record({ kind: 'answer_arrived', approval }));
  setHandler(approvalAnswered, (approval) => takeAnswer(record, approval), {
    validator: (approval) => refuseUnlessAsked(state, approval),
  });
  setHandler(turnState, () => state);
  const turn: Turn = { args, state: () => state, record, recordStep };
  await finish(turn, await Promise.race([loop(turn), cleanupOver(turn)]));
}

/** Goes round until a step says how the turn ends. */
async function loop(turn: Turn): Promise<End> {
  for (;;) {
    if (cancelRequested()) turn.record({ kind: 'cancel_requested' });
    if (isLong(turn.state())) await continueAsNew<typeof turnWorkflow>({ ...turn.args, state: turn.state() });
    const step = nextStep(turn.state(), Date.now());
    switch (step.kind) {
      case 'compact':
        turn.recordStep(await compact(turn.args, turn.state(), step.cause));
        break;
      case 'sample':
        turn.recordStep(await sample(turn, step));
        break;
      case 'gate':
        turn.recordStep(await gate(turn, step));
        break;
      case 'awaitDecision':
        turn.recordStep(await decisionOrExpiry(turn, step));
        break;
      case 'runTools':
        turn.recordStep(await runBatch(turn));
        break;
      case 'stopGate':
        turn.recordStep(await askStopGate(turn, step));
        break;
      case 'rest':
        turn.recordStep(await rest(step, () => cutsRest(turn.state())));
        break;
      case 'undo':
        turn.record(await undo(turn, step));
        break;
      case 'finish':
        turn.record({ kind: 'end_decided', end: step.end });
        return step.end;
    }
  }
}

/** Once a cancel came, cleaning up may take so long; past that the end is written whatever still runs. */
async function cleanupOver(turn: Turn): Promise<End> {
  await cancelHeard();
  turn.record({ kind: 'cancel_requested' });
  const { asked, phase } = turn.state();
  // The end is decided: the cancel may be the one that a limit's end asks for. No timer for what is cleaned up.
  if (!asked || phase.kind === 'ending') return await new Promise<never>(() => {});
  await CancellationScope.nonCancellable(async () => {
    const over = sleep(POLICY.cleanup.deadlineMs, { summary: 'deadline of the cleanup' });
    // Not waited for: it is tried until it works, and the end must be written before.
    void stopAgents(turn);
    await over;
  });
  turn.record({ kind: 'end_decided', end: asked.end });
  return asked.end;
}

/** At once, however long the turn's own calls take to stop. Its end does the same for whatever this could not reach. */
async function stopAgents(turn: Turn): Promise<void> {
  if (!turn.state().agents) return;
  await store.stopAgents(fenceOf(turn.args)).catch(() => {});
}

/** A fresh run takes over at a step boundary, unless a cancel must be heard first. */
function isLong(state: TurnState): boolean {
  return state.phase.kind === 'ready' && !state.asked && isHistoryLong();
}

async function sample(turn: Turn, step: Step & { kind: 'sample' }): Promise<Heard> {
  const state = turn.state();
  const { kind: _, ...asked } = step;
  const request = {
    fence: fenceOf(turn.args),
    agent: turn.args.agent,
    tools: turn.args.tools,
    step: state.step,
    resample: state.resample,
    head: state.head,
    contextTokens: state.limits.contextTokens,
    mayCompact: mayCompact(state),
    ...(state.agents ? { agents: 'counted' as const } : {}),
    ...asked,
  };
  const as = (purpose: Purpose) => () =>
    store.sample.executeWithOptions({ summary: `sample of step ${state.step}` }, [{ ...request, purpose }]);
  try {
    const isCut = () => pressing(turn.state(), step.inputs) !== null;
    const { came: outcome, away } = cameOf<SampleOutcome>(await cutShort(isCut, as('ask'), as('settle')));
    return { kind: 'sampled', outcome, drained: step.inputs.length, dice: Math.random(), away };
  } catch (error) {
    if (isCancellation(error))
      return { kind: 'sampled', outcome: { kind: 'cut', head: state.head, usage: NO_USAGE }, drained: 0, dice: 0 };
    return eventOfFailure(error);
  }
}

async function gate(turn: Turn, step: Step & { kind: 'gate' }): Promise<Heard> {
  const { ordinal } = step;
  try {
    const work = actingOn(turn.args).gate.executeWithOptions({ summary: `gate of call ${ordinal}` }, [
      { fence: fenceOf(turn.args), assistant: turn.state().head, ordinal },
    ]);
    return { kind: 'gated', ordinal, verdict: await work };
  } catch (error) {
    if (isCancellation(error)) return { kind: 'batch_returned' };
    return eventOfFailure(error);
  }
}

/** A person's answer, or the hour at which it is too late; days cost nothing meanwhile. */
async function decisionOrExpiry(turn: Turn, step: Step & { kind: 'awaitDecision' }): Promise<Heard> {
  const { ordinal, approval } = step;
  const waitsStill = () => {
    const call = callsNow(turn).find((each) => each.ref.ordinal === ordinal);
    return call?.state === 'asking' && call.untilMs > 0;
  };
  const isOver = () => !waitsStill() || pressing(turn.state()) !== null;
  try {
    if (step.forMs > 0) await condition(isOver, step.forMs, { summary: `approval ${approval}` });
    const { settleApproval } = actingOn(turn.args);
    const request = { fence: fenceOf(turn.args), approval, message: pressing(turn.state()) };
    const decision = await settleApproval.executeWithOptions({ summary: `approval ${approval}` }, [request]);
    return { kind: 'decided', ordinal, decision };
  } catch (error) {
    if (isCancellation(error)) return { kind: 'batch_returned' };
    return eventOfFailure(error);
  }
}

function refuseUnlessAsked(state: TurnState, approval: string): void {
  const asked = callsOf(state.phase).some((call) => 'approval' in call && call.approval === approval);
  if (!asked) throw turnFailure('approval.stale');
}

function takeAnswer(record: Turn['record'], approval: string): 'taken' {
  record({ kind: 'answer_arrived', approval });
  return 'taken';
}

/** The end is written whatever else happens; then the workflow closes the way the end says. */
async function finish(turn: Turn, end: End): Promise<void> {
  if (end.reason === 'INTERRUPTED') {
    showEnd(end);
    throw turnFailure(`turn.${end.detail}`);
  }
  const { step, runningMs } = turn.state();
  const marks = { answer: answered(turn.state(), end), contract: contractMark(turn.state()) };
  await CancellationScope.nonCancellable(async () => {
    try {
      await store.endTurn({ fence: fenceOf(turn.args), end, step, runningMs, ...marks });
    } catch (error) {
      const heard = eventOfFailure(error);
      throw turnFailure(heard.type);
    }
  });
  showEnd(end);
  switch (engineStatusOf(end.reason)) {
    case 'completed':
      return;
    case 'canceled':
      // Where a limit ended the turn, endTurn has asked for this cancel.
      return await CancellationScope.current().cancelRequested;
    case 'failed':
      throw turnFailure(`turn.error.${end.detail}`);
  }
}
